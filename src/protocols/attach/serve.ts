/**
 * The owner's side: serves the session contract on a unix socket to attached processes. Load it lazily: it brings `@effect/rpc`'s server.
 * Order at the end of the scope: the socket file goes, then the connections, then what still runs for them; so an attached process sees
 * its connection end, never a half-stopped owner.
 */
import type { Socket } from "node:net"
import * as RpcServer from "@effect/rpc/RpcServer"
import { Effect, Either, FiberSet, Layer, type Scope } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"
import type { SessionsService } from "../../actors/sessions.ts"
import { type ListenFailed, listenUnix } from "../socket/listen.ts"
import { handlersOf } from "./handlers.ts"
import { compare, type Peer, readGreeting, renderGreeting } from "./handshake.ts"
import { serverOptions, serveWires } from "./rpc-server.ts"
import { makeWire } from "./wire.ts"

export interface ServeOptions {
  /** Path of the socket; its directory is made (mode 0700) when missing. */
  readonly path: string
  readonly sessions: SessionsService
  /** Who we are; `instance` is a fresh value for every life of an owner. */
  readonly self: Peer
}

/** Serves until the scope closes. Completes once it listens. */
export const serveAttach = (options: ServeOptions): Effect.Effect<void, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const handlers = yield* Layer.build(handlersOf(options.sessions))
    const serve = yield* serveWires(Effect.provide(RpcServer.make(SessionRpcs, serverOptions), handlers))

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
        yield* serve(wire)
      }).pipe(Effect.ensuring(Effect.sync(() => socket.destroy())))

    const connections = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(connections)<never>()
    yield* listenUnix(options.path, (socket) => fork(converse(socket)), { directory: "create" })
  })
