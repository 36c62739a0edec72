/**
 * The JSON-RPC server over its three transports. A server lives in a scope: its end stops listening, removes the socket file and ends
 * every connection.
 */

import type { Socket } from "node:net"
import type { Readable, Writable } from "node:stream"
import type { Scope } from "effect"
import { Effect, FiberSet } from "effect"
import { openAuthenticator } from "../auth/tokens.ts"
import { makeRateTable, type RateTable } from "../http/rate.ts"
import { type ListenFailed, listenLoopback, listenUnix } from "../socket/listen.ts"
import { lineChannel } from "./channel.ts"
import { type ConnectionOptions, serveConnection } from "./connection.ts"
import { makeLogin } from "./login.ts"
import { makeMethods, type Service } from "./methods.ts"

export type { Service } from "./methods.ts"

/** Wrong tokens that one address may send. */
const loginRate = { rate: 0.5, burst: 30 }

/** What every connection of a server needs: the methods are shared, who calls is not. */
export const rpcConnections = (
  service: Service,
): ((address: string, principal?: string | null) => ConnectionOptions) => {
  const { auth = openAuthenticator, sessions } = service
  const methods = makeMethods(service)
  const attempts: RateTable = makeRateTable(loginRate)
  return (address, principal = service.principal ?? null) => ({
    sessions,
    methods,
    login: makeLogin({ auth, principal, attempts, address }),
  })
}

/** Accepts connections into a set that ends with the scope. */
const acceptor = (service: Service): Effect.Effect<(socket: Socket) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const connections = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(connections)<never>()
    const optionsFor = rpcConnections(service)
    return (socket) => {
      const channel = lineChannel({ input: socket, output: socket, endable: true })
      fork(serveConnection(channel, optionsFor(socket.remoteAddress ?? "unix")))
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
): Effect.Effect<void> =>
  Effect.suspend(() => serveConnection(lineChannel({ ...streams, endable: false }), rpcConnections(service)("stdio")))
