/**
 * JSON-RPC over WebSocket at `/rpc` of the gateway: one text message is one JSON-RPC message or batch. Owner of the socket once it is
 * upgraded. A client that takes nothing, or answers no ping, is cut off; a server that drains says 1001.
 */
import { Clock, Deferred, Effect, FiberId, Schedule, type Scope } from "effect"
import { type RawData, type WebSocket, WebSocketServer } from "ws"
import { type Authenticator, openAuthenticator } from "../auth/tokens.ts"
import type { HttpLimits } from "../http/limits.ts"
import { plainProblem } from "../http/problems.ts"
import type { RouteGroup, UpgradeRequest } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import type { Outlet } from "../socket/outlet.ts"
import { makeRoom } from "../socket/room.ts"
import type { Channel, Received } from "./channel.ts"
import { serveConnection } from "./connection.ts"
import { maxLine } from "./message.ts"
import { rpcConnections } from "./serve.ts"

/** Bytes that may wait in a socket before its requests are not read any more: 1 MiB, as on every transport. */
const highWater = 1024 * 1024
/** Messages, and characters of them, that are read ahead before the socket is paused. */
const readAhead = { messages: 64, size: 1024 * 1024 }

/** Pings without an answer after which a client counts as gone. */
const pingLimit = 4
const goingAway = 1001
/** For the peer to answer a close, in ms. */
const closingLimit = 1000

/** What keeps a socket in use, in ms. */
interface Patience {
  readonly heartbeatMs: number
  readonly stalledMs: number
}

const textOf = (data: RawData): string =>
  (Array.isArray(data) ? Buffer.concat(data) : data instanceof ArrayBuffer ? Buffer.from(data) : data).toString("utf8")

const received = (data: RawData, isBinary: boolean): Received =>
  isBinary
    ? { type: "unreadable", reason: "expected a text message, got a binary one" }
    : { type: "text", text: textOf(data) }

/** The channel of a socket. `watchdog` pings, and cuts off who does not answer or take anything; run it beside the connection. */
const webSocketChannel = (
  socket: WebSocket,
  patience: Patience,
  now: () => number,
): { readonly channel: Channel; readonly watchdog: Effect.Effect<void> } => {
  const closed = Deferred.unsafeMake<void>(FiberId.none)
  let isClosed = false
  let messages: Array<Received> = []
  let size = 0
  let wakeReader: (() => void) | null = null
  const listeners: Array<() => void> = []
  let heardAt = now()
  let takenAt = heardAt

  /** Pings in a row that nothing came after. Counted, not timed: a process that stood still for a while has heard nobody. */
  let unanswered = 0

  const hear = () => {
    heardAt = now()
    unanswered = 0
  }
  const hasRoom = () => isClosed || socket.bufferedAmount < highWater
  const { wait, wake: wakeWriters } = makeRoom(hasRoom)
  socket.on("message", (data, isBinary) => {
    hear()
    const message = received(data, isBinary)
    messages.push(message)
    size += message.type === "text" ? message.text.length : 0
    if (messages.length >= readAhead.messages || size >= readAhead.size) socket.pause()
    wakeReader?.()
  })
  socket.on("pong", hear)
  socket.on("ping", hear)
  // What is wrong with a frame closes the socket with a code that says so.
  socket.on("error", () => {})
  socket.on("close", () => {
    isClosed = true
    Deferred.unsafeDone(closed, Effect.void)
    wakeWriters()
    wakeReader?.()
  })

  const sent = () => {
    takenAt = now()
    if (!hasRoom()) return
    wakeWriters()
    for (const listener of listeners) listener()
  }

  const outlet: Outlet = {
    write: (text) => {
      if (socket.readyState !== socket.OPEN) return
      if (socket.bufferedAmount === 0) takenAt = now()
      socket.send(text, sent)
    },
    hasRoom,
    room: wait,
    closed: Deferred.await(closed),
    end: Effect.suspend(() => {
      if (isClosed) return Effect.void
      socket.close(1008, "not authenticated")
      return Deferred.await(closed)
    }),
    onRoom: (listener) => {
      listeners.push(listener)
    },
  }

  const receive: Channel["receive"] = Effect.suspend(() => {
    if (messages.length > 0) {
      const taken = messages
      messages = []
      size = 0
      if (socket.isPaused) socket.resume()
      return Effect.succeed(taken)
    }
    if (isClosed) return Effect.succeed(null)
    return Effect.zipRight(
      Effect.async<void>((resume) => {
        wakeReader = () => resume(Effect.void)
        return Effect.sync(() => {
          wakeReader = null
        })
      }),
      receive,
    )
  })

  const look = Effect.sync(() => {
    const at = now()
    const silent = !socket.isPaused && unanswered >= pingLimit
    const stalled = socket.bufferedAmount > 0 && at - takenAt > patience.stalledMs
    if (silent || stalled) socket.terminate()
    else if (socket.bufferedAmount === 0 && at - heardAt >= patience.heartbeatMs) {
      unanswered++
      socket.ping()
    }
  })

  return {
    channel: {
      receive,
      outlet,
      destroy: Effect.sync(() => {
        if (isClosed) return
        // An interrupted connection is one of a server that stops. Who does not answer the close is cut off by `ws`, or with the server.
        if (socket.readyState === socket.OPEN) socket.close(goingAway, "the server is stopping")
      }),
    },
    watchdog: Effect.repeat(
      look,
      Schedule.spaced(Math.max(20, Math.min(patience.heartbeatMs, patience.stalledMs) / 2)),
    ).pipe(Effect.asVoid),
  }
}

export interface WebSocketOptions {
  readonly auth?: Authenticator
  readonly limits: Pick<HttpLimits, "heartbeatMs" | "stalledMs">
}

/** The route `/rpc`. */
export const rpcRoutes = (
  service: ProtocolService,
  options: WebSocketOptions,
): Effect.Effect<RouteGroup, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { auth = openAuthenticator, limits } = options
    const clock = yield* Clock.clockWith(Effect.succeed)
    const connectionFor = rpcConnections({ ...service, auth })
    const server = yield* Effect.acquireRelease(
      Effect.sync(() => new WebSocketServer({ noServer: true, maxPayload: maxLine, perMessageDeflate: false })),
      (acquired) =>
        Effect.sync(() => {
          for (const client of acquired.clients) client.terminate()
          acquired.close()
        }),
    )

    const upgrade = ({ head, incoming, socket }: UpgradeRequest): Effect.Effect<WebSocket | null> =>
      Effect.async((resume) => {
        // A handshake that is refused is answered by `ws`, which then ends the connection.
        socket.once("close", () => resume(Effect.succeed(null)))
        server.handleUpgrade(incoming, socket, head, (opened) => resume(Effect.succeed(opened)))
      })

    const handle = (request: UpgradeRequest): Effect.Effect<void> =>
      Effect.gen(function* () {
        const socket = yield* upgrade(request)
        if (socket === null) return
        const { channel, watchdog } = webSocketChannel(socket, limits, () => clock.unsafeCurrentTimeMillis())
        const connection = serveConnection(channel, connectionFor(request.remoteAddress, request.principal))
        yield* Effect.raceFirst(connection, watchdog)
        // The last frames go out before the connection is taken away.
        yield* Effect.timeoutOption(channel.outlet.closed, closingLimit)
      })

    return {
      name: "jsonrpc",
      prefixes: ["/rpc"],
      routes: [],
      upgrades: [{ path: "/rpc", handle }],
      problem: plainProblem,
    }
  })
