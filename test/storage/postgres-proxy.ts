/**
 * A TCP proxy between a writer and its server, which cuts connections at bad moments.
 */
import { createServer, type Server, type Socket, connect as tcpConnect } from "node:net"
import { Effect, type Scope } from "effect"

/** Which half is cut, once the client has sent a commit: its answer never comes. */
export type Cut =
  /** Nothing reaches the server. */
  | "before"
  /** The server gets it and ends it; the answer is dropped. */
  | "after"
  /** The server gets it and knows nothing of the cut; the client knows at once. */
  | "half"

export interface Proxy {
  readonly port: number
  /** Cuts at the next commit. Resolves when it came. */
  readonly cutNext: (cut: Cut) => Promise<void>
  /** Lets nobody connect until it is called again with false. */
  readonly refuse: (refusing: boolean) => void
}

/** The function and the names of plain statements say what they write. */
const isCommit = (chunk: Buffer): boolean => chunk.includes("entries")

export const proxyTo = (port: number): Effect.Effect<Proxy, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const sockets = new Set<Socket>()
        let armed: { readonly cut: Cut; readonly came: () => void } | null = null
        let refusing = false
        const server: Server = createServer((client) => {
          if (refusing) return void client.destroy()
          const upstream = tcpConnect(port, "127.0.0.1")
          let dropping = false
          for (const socket of [client, upstream]) {
            sockets.add(socket)
            socket.on("error", () => undefined)
            socket.on("close", () => sockets.delete(socket))
          }
          client.on("data", (chunk) => {
            const due = armed !== null && isCommit(chunk) ? armed : null
            if (due === null) return void upstream.write(chunk)
            armed = null
            dropping = true
            if (due.cut !== "before") upstream.write(chunk)
            if (due.cut !== "after") client.destroy()
            if (due.cut === "before") upstream.destroy()
            due.came()
          })
          upstream.on("data", (chunk) => {
            if (!dropping) client.write(chunk)
            // the answer: it ends with "ready for query"
            else if (!client.destroyed) client.destroy()
          })
          client.on("close", () => dropping || upstream.destroy())
          upstream.on("close", () => client.destroy())
        })
        await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready))
        const address = server.address()
        return {
          server,
          sockets,
          proxy: {
            port: typeof address === "object" && address !== null ? address.port : 0,
            cutNext: (cut: Cut) =>
              new Promise<void>((came) => {
                armed = { cut, came }
              }),
            refuse: (wanted: boolean) => {
              refusing = wanted
            },
          },
        }
      }),
      ({ server, sockets }) =>
        Effect.promise(() => {
          for (const socket of sockets) socket.destroy()
          return new Promise<void>((ended) => server.close(() => ended()))
        }),
    ),
    ({ proxy }) => proxy,
  )
