/**
 * A client of the JSON-RPC protocol on a unix socket: one connection, answers matched by id, notifications handed on. Used by the stress run
 * and by tests that drive a real node.
 */
import { connect, type Socket } from "node:net"

/** The node answered with an error. */
export class RpcFault extends Error {
  readonly code: number
  readonly data: unknown
  constructor(method: string, code: number, message: string, data: unknown) {
    super(`${method}: ${message} (${code})${data === undefined ? "" : ` ${JSON.stringify(data)}`}`)
    this.code = code
    this.data = data
  }
}

/** The connection ended before the answer came: the call may have happened or not. */
export class ConnectionLost extends Error {}

interface Waiting {
  readonly method: string
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export interface Notification {
  readonly method: string
  readonly params: unknown
}

export class RpcClient {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  #rest = ""
  #lastId = 0
  #ended = false
  /** Called for every notification, in order. */
  onNotification: (notification: Notification) => void = () => {}
  readonly closed: Promise<void>

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setEncoding("utf8")
    socket.on("data", (chunk: string) => this.#read(chunk))
    socket.on("error", () => {})
    this.closed = new Promise((resolve) => {
      socket.on("close", () => {
        this.#ended = true
        for (const { method, reject } of this.#waiting.values()) reject(new ConnectionLost(method))
        this.#waiting.clear()
        resolve()
      })
    })
  }

  /** Fails with the system's error when nobody listens. */
  static connect(path: string): Promise<RpcClient> {
    return new Promise((resolve, reject) => {
      const socket = connect(path)
      socket.once("error", reject)
      socket.once("connect", () => {
        socket.off("error", reject)
        resolve(new RpcClient(socket))
      })
    })
  }

  /** Fails with {@link RpcFault} or {@link ConnectionLost}. */
  call<A>(method: string, params: unknown): Promise<A> {
    if (this.#ended) return Promise.reject(new ConnectionLost(method))
    const id = ++this.#lastId
    return new Promise<A>((resolve, reject) => {
      // The protocol's results are the caller's to name; what they hold is checked where it matters.
      this.#waiting.set(id, { method, resolve: (result) => resolve(result as A), reject })
      this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    })
  }

  notify(method: string, params: unknown): void {
    if (!this.#ended) this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`)
  }

  close(): Promise<void> {
    this.#socket.destroy()
    return this.closed
  }

  #read(chunk: string): void {
    const lines = (this.#rest + chunk).split("\n")
    this.#rest = lines.pop() ?? ""
    for (const line of lines) {
      const message = JSON.parse(line)
      if (message.id === undefined) {
        this.onNotification({ method: message.method, params: message.params })
        continue
      }
      const waiting = this.#waiting.get(message.id)
      this.#waiting.delete(message.id)
      if (message.error === undefined) waiting?.resolve(message.result)
      else waiting?.reject(new RpcFault(waiting.method, message.error.code, message.error.message, message.error.data))
    }
  }
}
