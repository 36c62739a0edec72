/**
 * A small pooler between clients and a server: speaks just enough of the protocol to give each transaction, or each session, a connection of
 * its own. Servers with password authentication in the clear, no encryption.
 */
import { connect, createServer, type Socket } from "node:net"
import { Effect, type Scope } from "effect"

export interface PoolerOptions {
  readonly mode: "transaction" | "session" | "statement"
  /** Which free connection of the server is next: the last one that came back, as poolers do by default, or the first. */
  readonly next?: "last" | "first"
  readonly size?: number
}

/** One message: a type, a length that counts itself, and a body. */
const message = (type: string, body: Buffer): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type, 0, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}

const startup = (parameters: Record<string, string>): Buffer => {
  const body = Buffer.from(`${Object.entries(parameters).flat().join("\0")}\0\0`)
  const head = Buffer.alloc(8)
  head.writeInt32BE(body.length + 8, 0)
  head.writeInt32BE(196_608, 4)
  return Buffer.concat([head, body])
}

/** Calls back with every whole message, in order. */
const framed = (receive: (type: string, whole: Buffer) => void) => {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk: Buffer) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5 && rest.length >= rest.readInt32BE(1) + 1) {
      const end = rest.readInt32BE(1) + 1
      const whole = rest.subarray(0, end)
      rest = rest.subarray(end)
      receive(whole.toString("latin1", 0, 1), whole)
    }
  }
}

interface Backend {
  readonly socket: Socket
  client: Client | null
}

interface Client {
  readonly socket: Socket
  backend: Backend | null
  readonly waiting: Array<Buffer>
}

const ready = message("Z", Buffer.from("I"))

const openBackend = (url: URL, onMessage: (type: string, whole: Buffer) => void): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(Number(url.port), url.hostname)
    let open = false
    socket.once("error", reject)
    socket.once("connect", () =>
      socket.write(startup({ user: url.username, database: url.pathname.slice(1), client_encoding: "UTF8" })),
    )
    socket.on(
      "data",
      framed((type, whole) => {
        if (open) return onMessage(type, whole)
        if (type === "R" && whole.readInt32BE(5) === 3) socket.write(message("p", Buffer.from(`${url.password}\0`)))
        if (type === "E") reject(new Error(whole.toString("utf8")))
        if (type !== "Z") return
        open = true
        resolve(socket)
      }),
    )
  })

/** A URL like `server`, through a pooler that is gone with the scope. */
export const fakePooler = (server: string, options: PoolerOptions): Effect.Effect<string, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.promise(async () => {
        const { mode, next = "last", size = 3 } = options
        const free: Array<Backend> = []
        const queue: Array<Client> = []
        const sockets: Array<Socket> = []

        const serve = (client: Client) => {
          const backend = next === "last" ? free.pop() : free.shift()
          if (backend === undefined) return queue.push(client)
          client.backend = backend
          backend.client = client
          for (const chunk of client.waiting.splice(0)) backend.socket.write(chunk)
          return 0
        }
        const release = (backend: Backend) => {
          if (backend.client !== null) backend.client.backend = null
          backend.client = null
          free.push(backend)
          const first = queue.shift()
          if (first !== undefined) serve(first)
        }
        for (let n = 0; n < size; n++) {
          const holder: { backend?: Backend } = {}
          const socket = await openBackend(new URL(server), (type, whole) => {
            const { backend } = holder
            if (backend === undefined) return
            backend.client?.socket.write(whole)
            // the transaction is over
            if (type === "Z" && whole[5] === 0x49 && mode !== "session") release(backend)
          })
          holder.backend = { socket, client: null }
          free.push(holder.backend)
          sockets.push(socket)
        }

        const listener = createServer((socket) => {
          const client: Client = { socket, backend: null, waiting: [] }
          sockets.push(socket)
          socket.on("error", () => undefined)
          socket.once("close", () => {
            const at = queue.indexOf(client)
            if (at >= 0) queue.splice(at, 1)
            if (client.backend !== null) release(client.backend)
          })
          const receive = framed((type, whole) => {
            if (type === "X") return socket.end()
            if (mode === "statement" && type === "Q" && /^BEGIN/.test(whole.toString("utf8", 5))) {
              const refused = "SERROR\0C25P02\0Mtransaction blocks not allowed in statement pooling mode\0\0"
              return socket.write(Buffer.concat([message("E", Buffer.from(refused)), ready]))
            }
            if (client.backend !== null) return client.backend.socket.write(whole)
            client.waiting.push(whole)
            if (client.waiting.length === 1) serve(client)
            return undefined
          })
          // who comes is not checked
          socket.once("data", () => {
            socket.write(Buffer.concat([message("R", Buffer.alloc(4)), message("K", Buffer.alloc(8)), ready]))
            socket.on("data", receive)
          })
        })
        await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve))
        return { listener, sockets }
      }),
      ({ listener, sockets }) =>
        Effect.promise(() => {
          for (const socket of sockets) socket.destroy()
          return new Promise<void>((resolve) => listener.close(() => resolve()))
        }),
    ),
    ({ listener }) => {
      const url = new URL(server)
      const address = listener.address()
      url.port = String(typeof address === "object" && address !== null ? address.port : 0)
      return url.href
    },
  )
