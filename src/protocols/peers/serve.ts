/**
 * Answers other nodes. The port is opened first and the node behind it may come later: until then connections are turned away, and their
 * side tries again. Order at the end of the scopes: the node's connections end, then what runs for them; the port closes with its own scope.
 */
import type { Socket } from "node:net"
import * as RpcServer from "@effect/rpc/RpcServer"
import { Effect, FiberSet, Layer, type Scope } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import { handlersOf } from "../attach/handlers.ts"
import { serverOptions, serveWires } from "../attach/rpc-server.ts"
import { makeWire } from "../attach/wire.ts"
import { type ListenFailed, listenTcp } from "../socket/listen.ts"
import { peerPingMs } from "./connect.ts"
import { type NodeInfo, NodeRpcs, PeerRpcs } from "./control.ts"
import { isLasting } from "./faults.ts"
import { type GreetingOptions, greet } from "./greeting.ts"
import { maxHandshakeLine } from "./handshake.ts"
import type { PeerTls } from "./tls.ts"

/** Connections whose greeting is not over; more are turned away. */
const maxGreetings = 128
/** Addresses of whose faults the log was told. */
const maxToldAddresses = 1000

export interface PeerListener {
  /** The port that is open. */
  readonly port: number
  /** Answers what connects until the scope closes. At most one at a time. */
  readonly serve: (options: ServePeersOptions) => Effect.Effect<void, never, Scope.Scope>
}

export interface ServePeersOptions extends GreetingOptions {
  /** The conversations of this node alone. */
  readonly sessions: SessionsService
  readonly info: Effect.Effect<NodeInfo>
  /** Milliseconds; a caller that says nothing for two to three times as long is taken for gone. Default 4,000: two pings. */
  readonly silentMs?: number
}

/** Opens the port for other nodes until the scope closes. */
export const listenPeers = (options: {
  /** Null: every address of the machine. */
  readonly host: string | null
  /** 0 picks a free one. */
  readonly port: number
  readonly tls: PeerTls | null
}): Effect.Effect<PeerListener, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    let accept: ((socket: Socket) => void) | null = null
    const log = yield* makeOnceLog
    const port = yield* listenTcp(
      { ...options, onFault: (from, detail) => log.tell(from, `${from}: the TLS handshake failed (${detail})`) },
      (socket) => {
        socket.on("error", () => undefined)
        if (accept === null) socket.destroy()
        else accept(socket)
      },
    )
    return {
      port,
      serve: (serving) =>
        Effect.gen(function* () {
          accept = yield* acceptor(serving, log)
          yield* Effect.addFinalizer(() =>
            Effect.sync(() => {
              accept = null
            }),
          )
        }),
    }
  })

const acceptor = (
  options: ServePeersOptions,
  log: OnceLog,
): Effect.Effect<(socket: Socket) => void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const own = NodeRpcs.toLayer({ ReadNodeInfo: () => options.info })
    const handlers = yield* Layer.build(Layer.merge(handlersOf(options.sessions), own))
    const serve = yield* serveWires(Effect.provide(RpcServer.make(PeerRpcs, serverOptions), handlers), {
      silentMs: options.silentMs ?? peerPingMs * 2,
    })
    let greetings = 0

    const converse = (socket: Socket): Effect.Effect<void> =>
      Effect.gen(function* () {
        const from = socket.remoteAddress ?? "?"
        const wire = makeWire(socket, maxHandshakeLine)
        const peer = yield* greet(wire, "server", from, options).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              greetings--
            }),
          ),
          Effect.catchAll((fault) =>
            Effect.sync(() => {
              if (isLasting(fault.reason)) log.tell(from, `a connection was turned away: ${fault.message}`)
              return null
            }),
          ),
        )
        if (peer === null) return
        log.forget(from)
        yield* serve(wire)
      }).pipe(Effect.ensuring(Effect.sync(() => socket.destroy())))

    const connections = yield* FiberSet.make<void>()
    const fork = yield* FiberSet.runtime(connections)<never>()
    return (socket): void => {
      if (greetings >= maxGreetings) {
        socket.destroy()
        return
      }
      greetings++
      fork(converse(socket))
    }
  })

interface OnceLog {
  readonly tell: (from: string, line: string) => void
  /** What comes from there next is told again. */
  readonly forget: (from: string) => void
}

/** Warnings, one for each address. */
const makeOnceLog: Effect.Effect<OnceLog, never, Scope.Scope> = Effect.gen(function* () {
  const fork = yield* FiberSet.makeRuntime<never>()
  const told = new Set<string>()
  return {
    tell: (from, line) => {
      if (told.has(from)) return
      if (told.size >= maxToldAddresses) told.clear()
      told.add(from)
      fork(Effect.logWarning(line))
    },
    forget: (from) => {
      told.delete(from)
    },
  }
})
