/**
 * A TCP proxy that can become a black hole: nothing passes any more, and neither side is told. What was on its way when it began passes when
 * it ends, as on a network that comes back.
 */
import { connect, createServer, type Server, type Socket } from "node:net"

interface Pair {
  readonly client: Socket
  readonly server: Socket
}

export class BlackHole {
  readonly port: number
  readonly #listener: Server
  readonly #pairs = new Set<Pair>()
  #cut = false

  private constructor(listener: Server, target: { readonly port: number }) {
    this.#listener = listener
    const address = listener.address()
    this.port = typeof address === "object" && address !== null ? address.port : 0
    listener.on("connection", (client) => {
      const pair = { client, server: connect({ host: "127.0.0.1", port: target.port, noDelay: true }) }
      client.setNoDelay(true)
      this.#pairs.add(pair)
      for (const socket of [pair.client, pair.server]) {
        socket.on("error", () => undefined)
        socket.on("close", () => {
          if (!this.#cut) this.#end(pair)
        })
      }
      if (this.#cut) hold(pair)
      else pass(pair)
    })
  }

  /** In front of a port of loopback. */
  static open(target: { readonly port: number }): Promise<BlackHole> {
    return new Promise((done, fail) => {
      const listener = createServer()
      listener.once("error", fail)
      listener.listen(0, "127.0.0.1", () => done(new BlackHole(listener, target)))
    })
  }

  cut(): void {
    this.#cut = true
    for (const pair of this.#pairs) hold(pair)
  }

  heal(): void {
    this.#cut = false
    for (const pair of this.#pairs) {
      if (pair.client.destroyed || pair.server.destroyed) this.#end(pair)
      else pass(pair)
    }
  }

  async close(): Promise<void> {
    for (const pair of this.#pairs) this.#end(pair)
    await new Promise((done) => this.#listener.close(done))
  }

  #end(pair: Pair): void {
    this.#pairs.delete(pair)
    pair.client.destroy()
    pair.server.destroy()
  }
}

const pass = ({ client, server }: Pair): void => {
  client.pipe(server)
  server.pipe(client)
}

const hold = ({ client, server }: Pair): void => {
  client.unpipe(server).pause()
  server.unpipe(client).pause()
}
