/**
 * A client of one node: JSON-RPC over its WebSocket `/rpc`.
 */
import WebSocket from "ws"
import { ConnectionLost, RpcFault } from "../../../stress/rpc-client.ts"

interface Waiting {
  readonly method: string
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

interface Received {
  readonly id?: number
  readonly method?: string
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
}

export class RpcSocket {
  readonly #socket: WebSocket
  readonly #waiting = new Map<number, Waiting>()
  #lastId = 0
  /** Called for every notification, in order. */
  onNotification: (method: string, params: unknown) => void = () => {}

  private constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on("message", (data) => this.#receive(JSON.parse(String(data))))
    socket.on("error", () => {})
    socket.on("close", () => {
      for (const { method, reject } of this.#waiting.values()) reject(new ConnectionLost(method))
      this.#waiting.clear()
    })
  }

  static connect(url: string): Promise<RpcSocket> {
    return new Promise((done, fail) => {
      const socket = new WebSocket(`${url.replace(/^http/, "ws")}/rpc`)
      const lost = (error: Error) => fail(new ConnectionLost(error.message))
      socket.once("error", lost)
      socket.once("open", () => {
        socket.off("error", lost)
        done(new RpcSocket(socket))
      })
    })
  }

  get isOpen(): boolean {
    return this.#socket.readyState === WebSocket.OPEN
  }

  /** Fails with {@link RpcFault} or {@link ConnectionLost}. */
  call<A>(method: string, params: object): Promise<A> {
    if (!this.isOpen) return Promise.reject(new ConnectionLost(method))
    const id = ++this.#lastId
    return new Promise<A>((resolve, reject) => {
      // the caller names the result; what it holds is checked where it matters
      this.#waiting.set(id, { method, resolve: (result) => resolve(result as A), reject })
      this.#socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
    })
  }

  close(): void {
    this.#socket.terminate()
  }

  #receive({ error, id, method, params, result }: Received): void {
    if (id === undefined) {
      if (method !== undefined) this.onNotification(method, params)
      return
    }
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (error === undefined) waiting?.resolve(result)
    else waiting?.reject(new RpcFault(waiting.method, error.code, error.message, error.data))
  }
}
