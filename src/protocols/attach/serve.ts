/**
 * The owner's side: serves the session contract on a unix socket to attached processes. Load it lazily: it brings `@effect/rpc`'s server.
 * Order at the end of the scope: the socket file goes, then the connections, then what still runs for them; so an attached process sees
 * its connection end, never a half-stopped owner.
 */
import type { Socket } from "node:net"
import type { FromClientEncoded } from "@effect/rpc/RpcMessage"
import * as RpcServer from "@effect/rpc/RpcServer"
import { Deferred, Effect, Either, FiberSet, Layer, Mailbox, type Scope } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"
import type { SessionsService } from "../../actors/sessions.ts"
import { type ListenFailed, listenUnix } from "../socket/listen.ts"
import { handlersOf } from "./handlers.ts"
import { compare, type Peer, readGreeting, renderGreeting } from "./handshake.ts"
import { makeWire, receive, type Wire } from "./wire.ts"

export interface ServeOptions {
  /** Path of the socket; its directory is made (mode 0700) when missing. */
  readonly path: string
  readonly sessions: SessionsService
  /** Who we are; `instance` is a fresh value for every life of an owner. */
  readonly self: Peer
}

/** Whether a message is one that a client may send. */
const isFromClient = (message: { readonly _tag: string }): message is FromClientEncoded =>
  ["Request", "Ack", "Interrupt", "Ping", "Eof"].includes(message._tag)

/** Serves until the scope closes. Completes once it listens. */
export const serveAttach = (options: ServeOptions): Effect.Effect<void, ListenFailed, Scope.Scope> =>
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

    const handlers = yield* Layer.build(handlersOf(options.sessions))
    yield* RpcServer.make(SessionRpcs, { disableFatalDefects: true, disableTracing: true }).pipe(
      Effect.provideService(RpcServer.Protocol, protocol),
      Effect.provide(handlers),
      Effect.interruptible,
      Effect.forkScoped,
    )

    let clients = 0
    const converse = (socket: Socket): Effect.Effect<void> =>
      Effect.gen(function* () {
        const wire = makeWire(socket)
        wire.outlet.write(renderGreeting(options.self))
        const greeting = yield* Effect.timeoutTo(wire.line, {
          duration: "10 seconds",
          onSuccess: (line) => line,
          onTimeout: () => null,
        })
        const peer = greeting === null ? null : readGreeting(greeting)
        // A stranger, or another version: it has read our greeting and knows why.
        if (peer === null || Either.isLeft(compare(options.self, peer))) return yield* wire.outlet.end
        const client = clients++
        wires.set(client, wire)
        const read = receive(wire, isFromClient, (message) => write(client, message))
        yield* Effect.raceFirst(read, wire.outlet.closed).pipe(
          Effect.ensuring(
            Effect.suspend(() => {
              wires.delete(client)
              return disconnects.offer(client)
            }),
          ),
        )
      }).pipe(Effect.ensuring(Effect.sync(() => socket.destroy())))

    const connections = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(connections)<never>()
    yield* listenUnix(options.path, (socket) => fork(converse(socket)), { directory: "create" })
  })
