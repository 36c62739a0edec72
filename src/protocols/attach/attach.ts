/**
 * The attached side: a `Sessions` over the owner's unix socket. Load it lazily: it brings `@effect/rpc`'s client. A connection is used
 * until it ends and never again; who wants to go on after that attaches anew (see `takeover.ts`).
 */
import { createConnection, type Socket } from "node:net"
import * as RpcClient from "@effect/rpc/RpcClient"
import { Effect, type Scope } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"
import { errorCode } from "../../domain/error-code.ts"
import { type AttachFailure, type Attachment, NotAnswering } from "./attachment.ts"
import { makeConnection } from "./connection.ts"
import { compare, maxGreeting, type Peer, readGreeting, renderGreeting } from "./handshake.ts"
import { sessionsOver } from "./sessions-over.ts"
import { makeWire, type Wire } from "./wire.ts"

export interface AttachOptions {
  readonly socket: string
  readonly self: Peer
  /** How long the owner may take to greet, in milliseconds; default 2,000. */
  readonly timeoutMs?: number
  /** Milliseconds between two pings, after two of which without a sign of life the owner is taken for gone; default 10,000. */
  readonly pingMs?: number
}

/** Milliseconds between two pings. */
const defaultPingMs = 10_000

const reasonOf = (cause: unknown): NotAnswering["reason"] => {
  const code = errorCode(cause)
  if (code === "ENOENT") return "absent"
  if (code === "EACCES" || code === "EPERM") return "forbidden"
  return "refused"
}

const connect = (path: string): Effect.Effect<Socket, NotAnswering, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Socket, NotAnswering>((resume) => {
      const socket = createConnection({ path })
      const failed = (cause: unknown) => resume(new NotAnswering({ socket: path, reason: reasonOf(cause) }))
      socket.once("error", failed)
      socket.once("connect", () => {
        socket.off("error", failed)
        // Nobody may miss an error between here and the wire's own listener.
        socket.on("error", () => undefined)
        resume(Effect.succeed(socket))
      })
      return Effect.sync(() => socket.destroy())
    }),
    (socket) => Effect.sync(() => socket.destroy()),
  )

const greet = (wire: Wire, options: AttachOptions): Effect.Effect<Peer, AttachFailure> =>
  Effect.gen(function* () {
    wire.outlet.write(renderGreeting(options.self))
    const line = yield* Effect.timeoutFail(wire.line, {
      duration: options.timeoutMs ?? 2000,
      onTimeout: () => new NotAnswering({ socket: options.socket, reason: "silent" }),
    })
    // It left while we came.
    if (line === null) return yield* new NotAnswering({ socket: options.socket, reason: "refused" })
    const peer = line.length > maxGreeting ? null : readGreeting(line)
    if (peer === null) return yield* new NotAnswering({ socket: options.socket, reason: "stranger" })
    return yield* compare(options.self, peer)
  })

/** Attaches to the owner on a socket until the scope closes. */
export const attach = (options: AttachOptions): Effect.Effect<Attachment, AttachFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const wire = makeWire(yield* connect(options.socket))
    const owner = yield* greet(wire, options)
    const connection = yield* makeConnection(wire, options.pingMs ?? defaultPingMs)
    const client = yield* Effect.provideService(
      RpcClient.make(SessionRpcs, { disableTracing: true }),
      RpcClient.Protocol,
      connection.protocol,
    )
    return { owner, sessions: sessionsOver(client, connection), gone: connection.gone }
  })
