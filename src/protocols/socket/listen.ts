/**
 * Listening sockets. A unix socket gets mode 0600; a file that a dead process left is replaced, one that answers is left alone, and so
 * is anything that is not a socket. The file goes away when the scope closes.
 */
import { chmodSync, existsSync, lstatSync, mkdirSync, unlinkSync } from "node:fs"
import type { Server, Socket } from "node:net"
import { createConnection, createServer } from "node:net"
import { dirname } from "node:path"
import type { TlsOptions } from "node:tls"
import type { Scope } from "effect"
import { Effect, Schema } from "effect"
import { errorCode } from "../../domain/error-code.ts"

/** A socket could not be opened. `detail` is one line that says why and what to do. */
export class ListenFailed extends Schema.TaggedError<ListenFailed>()("ListenFailed", {
  address: Schema.String,
  code: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.address}: ${this.detail}`
  }
}

/** Bytes that a unix socket's path may have: the smallest limit of the systems that we run on (macOS: 104 with the final zero). */
const maxSocketPath = 103

const failed = (address: string, code: string, detail: string) => new ListenFailed({ address, code, detail })

const advice: Readonly<Record<string, string>> = {
  EADDRINUSE: "already in use; stop the other server or choose another address",
  EACCES: "permission denied; choose an address that this user may use",
  ENOENT: "its directory does not exist; create it or choose another path",
  ENOTDIR: "its directory is not a directory; choose another path",
}

/** Why a socket does not open, from the system's error. */
export const listenFailure = (address: string, cause: unknown) => {
  const code = errorCode(cause) || "UNKNOWN"
  return failed(
    address,
    code,
    advice[code] ?? `cannot listen (${cause instanceof Error ? cause.message : String(cause)})`,
  )
}

/** Whether somebody answers on the unix socket at `path`. */
const answers = (path: string): Effect.Effect<boolean> =>
  Effect.async<boolean>((resume) => {
    const socket = createConnection({ path })
    const done = (alive: boolean) => {
      socket.destroy()
      resume(Effect.succeed(alive))
    }
    socket.on("connect", () => done(true))
    // A full backlog (EAGAIN) or a forbidden one (EACCES) belongs to a living process.
    socket.on("error", (cause) => done(errorCode(cause) !== "ECONNREFUSED" && errorCode(cause) !== "ENOENT"))
    return Effect.sync(() => socket.destroy())
  })

/** Removes a socket file on which nobody answers. */
const clearStale = (path: string): Effect.Effect<void, ListenFailed> =>
  Effect.gen(function* () {
    const before = lstatSync(path, { throwIfNoEntry: false })
    if (before === undefined) return
    if (!before.isSocket()) {
      return yield* failed(
        path,
        "ENOTSOCK",
        "a file that is not a socket is in the way; remove it or choose another path",
      )
    }
    if (yield* answers(path)) return yield* failed(path, "EADDRINUSE", advice.EADDRINUSE ?? "already in use")
    const now = lstatSync(path, { throwIfNoEntry: false })
    if (now?.ino === before.ino) unlinkSync(path)
  }).pipe(Effect.catchAllDefect((cause) => listenFailure(path, cause)))

/** Binds with a umask, so that the file never exists with a wider mode; worker threads may not change it and rely on `chmod`. */
const withPrivateUmask = (bind: () => void) => {
  let previous: number | null = null
  try {
    previous = process.umask(0o177)
  } catch {
    // Not available in a worker thread.
  }
  try {
    bind()
  } finally {
    if (previous !== null) process.umask(previous)
  }
}

/** Half-open: a client that ended its side still gets its answers. */
const halfOpen = (onConnection: (socket: Socket) => void): Server =>
  createServer({ allowHalfOpen: true, noDelay: true }, onConnection)

const listening = (
  address: string,
  make: () => Server,
  bind: (server: Server) => void,
): Effect.Effect<Server, ListenFailed, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Server, ListenFailed>((resume) => {
      const server = make()
      server.on("error", (cause) => resume(listenFailure(address, cause)))
      server.on("listening", () => resume(Effect.succeed(server)))
      try {
        bind(server)
      } catch (cause) {
        resume(listenFailure(address, cause))
      }
    }),
    (server) => Effect.sync(() => server.close()),
  )

/**
 * Listens on a unix socket of mode 0600 until the scope closes; then the file is removed. Connections are the caller's to end.
 * `directory: "create"` makes a missing directory, with mode 0700.
 */
export const listenUnix = (
  path: string,
  onConnection: (socket: Socket) => void,
  options?: { readonly directory?: "create" },
): Effect.Effect<void, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const bytes = Buffer.byteLength(path)
    if (bytes > maxSocketPath) {
      return yield* failed(
        path,
        "ENAMETOOLONG",
        `expected a path of at most ${maxSocketPath} bytes, got ${bytes}; choose a shorter one`,
      )
    }
    if (options?.directory === "create") {
      yield* Effect.try({
        try: () => existsSync(dirname(path)) || mkdirSync(dirname(path), { mode: 0o700 }),
        catch: (cause) => listenFailure(path, cause),
      })
    }
    yield* clearStale(path)
    yield* listening(
      path,
      () => halfOpen(onConnection),
      (server) => withPrivateUmask(() => server.listen({ path })),
    )
    yield* Effect.try({ try: () => chmodSync(path, 0o600), catch: (cause) => listenFailure(path, cause) })
  })

const portOf = (server: Server, otherwise: number): number => {
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : otherwise
}

/** Listens on TCP 127.0.0.1 until the scope closes; port 0 picks a free one. Answers the port. */
export const listenLoopback = (
  port: number,
  onConnection: (socket: Socket) => void,
): Effect.Effect<number, ListenFailed, Scope.Scope> =>
  Effect.map(
    listening(
      `127.0.0.1:${port}`,
      () => halfOpen(onConnection),
      (server) => server.listen({ host: "127.0.0.1", port }),
    ),
    (server) => portOf(server, port),
  )

/** OpenSSL's reason in a few words. */
const tlsDetail = (cause: Error): string =>
  "reason" in cause && typeof cause.reason === "string" ? cause.reason : errorCode(cause) || "unknown"

export interface ListenTcpOptions {
  /** Null: every address of the machine. */
  readonly host: string | null
  /** 0 picks a free one. */
  readonly port: number
  /** With it only connections whose handshake succeeded are handed over. */
  readonly tls: TlsOptions | null
  /** A TLS connection that came to nothing; `from` is its address. */
  readonly onFault?: (from: string, detail: string) => void
}

/** Listens on TCP or TLS until the scope closes. Connections are the caller's to end. Answers the port. */
export const listenTcp = (
  { host, port, tls, onFault }: ListenTcpOptions,
  onConnection: (socket: Socket) => void,
): Effect.Effect<number, ListenFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const options = { noDelay: true, keepAlive: true, keepAliveInitialDelay: 10_000 }
    const { createServer: createTlsServer } = yield* Effect.promise(() => import("node:tls"))
    const make = () => {
      if (tls === null) return createServer(options, onConnection)
      // Who shows no good certificate is sent away here, and not by the library, which would not say whom it sent away.
      const server = createTlsServer(
        { ...options, ...tls, rejectUnauthorized: false, handshakeTimeout: 5000 },
        (socket) => {
          if (tls.requestCert !== true || socket.authorized) return onConnection(socket)
          onFault?.(socket.remoteAddress ?? "?", String(socket.authorizationError))
          socket.destroy()
        },
      )
      // One that only left is no fault.
      server.on("tlsClientError", (cause, socket) => {
        if (socket.remoteAddress !== undefined) onFault?.(socket.remoteAddress, tlsDetail(cause))
      })
      return server
    }
    const address = `${host ?? "*"}:${port}`
    const server = yield* listening(address, make, (one) => one.listen(host === null ? { port } : { host, port }))
    return portOf(server, port)
  })
