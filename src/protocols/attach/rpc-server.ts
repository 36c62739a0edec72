/**
 * The answering side of the attach protocol on wires whose greeting is over, whatever they run on. Load it lazily: it brings
 * `@effect/rpc`'s server.
 */
import type { FromClientEncoded } from "@effect/rpc/RpcMessage"
import * as RpcServer from "@effect/rpc/RpcServer"
import { Deferred, Effect, Mailbox, type Scope } from "effect"
import { makeHeartbeat } from "./heartbeat.ts"
import { receive, type Wire } from "./wire.ts"

/** Whether a message is one that a client may send. */
const isFromClient = (message: { readonly _tag: string }): message is FromClientEncoded =>
  ["Request", "Ack", "Interrupt", "Ping", "Eof"].includes(message._tag)

/** What a fault of a handler does, and that calls are traced by the node itself. */
export const serverOptions = { disableFatalDefects: true, disableTracing: true } as const

/**
 * Runs `server` until the scope closes, and answers what talks to it: serves one wire until that ends. With `silentMs`, a client that says
 * nothing for two to three times as long is taken for gone. What runs for a client ends with it.
 */
export const serveWires = (
  server: Effect.Effect<never, never, RpcServer.Protocol | Scope.Scope>,
  options?: { readonly silentMs?: number },
): Effect.Effect<(wire: Wire) => Effect.Effect<void>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const wires = new Map<number, Wire>()
    const disconnects = yield* Mailbox.make<number>()
    const handed = yield* Deferred.make<(client: number, message: FromClientEncoded) => Effect.Effect<void>>()

    const protocol = yield* RpcServer.Protocol.make((write) =>
      Effect.as(Deferred.succeed(handed, write), {
        disconnects,
        send: (client: number, message: object) => wires.get(client)?.send(message) ?? Effect.void,
        end: () => Effect.void,
        clientIds: Effect.sync(() => new Set(wires.keys())),
        initialMessage: Effect.succeedNone,
        supportsAck: true,
        supportsTransferables: false,
        supportsSpanPropagation: false,
      }),
    )
    const write = yield* Deferred.await(handed)
    yield* server.pipe(Effect.provideService(RpcServer.Protocol, protocol), Effect.interruptible, Effect.forkScoped)

    let clients = 0
    return (wire) =>
      Effect.suspend(() => {
        const client = clients++
        wires.set(client, wire)
        const heartbeat = options?.silentMs === undefined ? null : makeHeartbeat(options.silentMs)
        const read = receive(wire, isFromClient, (message) => {
          heartbeat?.sign()
          return write(client, message)
        })
        const ended = heartbeat === null ? wire.outlet.closed : Effect.raceFirst(wire.outlet.closed, heartbeat.silence)
        return Effect.raceFirst(read, ended).pipe(
          Effect.ensuring(
            Effect.suspend(() => {
              wires.delete(client)
              return disconnects.offer(client)
            }),
          ),
        )
      })
  })
