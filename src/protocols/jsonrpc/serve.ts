/**
 * The JSON-RPC server over its three transports. A server lives in a scope: its end stops listening, removes the socket file and ends
 * every connection.
 */

import type { Socket } from "node:net"
import type { Readable, Writable } from "node:stream"
import type { Scope } from "effect"
import { Effect, FiberSet } from "effect"
import { type ListenFailed, listenLoopback, listenUnix } from "../socket/listen.ts"
import { serveConnection } from "./connection.ts"
import type { Service } from "./methods.ts"

export type { Service } from "./methods.ts"

/** Accepts connections into a set that ends with the scope. */
const acceptor = (service: Service): Effect.Effect<(socket: Socket) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(connections)<never>()
    return (socket) => {
      fork(serveConnection({ input: socket, output: socket, endable: true }, service))
    }
  })

/** Serves on a unix socket of mode 0600 until the scope closes. Completes once it listens. */
export const serveUnix = (path: string, service: Service): Effect.Effect<void, ListenFailed, Scope.Scope> =>
  Effect.flatMap(acceptor(service), (accept) => listenUnix(path, accept))

/** Serves on 127.0.0.1 until the scope closes. Answers the port, which matters for port 0. */
export const serveTcp = (port: number, service: Service): Effect.Effect<number, ListenFailed, Scope.Scope> =>
  Effect.flatMap(acceptor(service), (accept) => listenLoopback(port, accept))

/**
 * Serves one client over two streams; completes when the client has ended its side and has all its answers, or is gone. With stdin and
 * stdout nothing else may write to stdout.
 */
export const serveStdio = (
  service: Service,
  streams: { readonly input: Readable; readonly output: Writable } = { input: process.stdin, output: process.stdout },
): Effect.Effect<void> => serveConnection({ ...streams, endable: false }, service)
