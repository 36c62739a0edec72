/**
 * A typed client of the JSON-RPC protocol (docs/json-rpc.md) over any pair of streams: a unix socket, a TCP connection, or the pipes of a
 * `super-pi rpc --stdio`. Copy it: it depends on Node.js and on the types of `super-pi` only.
 */
import { createConnection } from "node:net"
import type { Readable, Writable } from "node:stream"
import type { AgentDocument, Event, Receipt, SessionState, SessionSummary, Settled } from "super-pi"

/** The methods that this client knows by type; `call` takes any other by name. */
interface Methods {
  "auth.login": { params: { token: string }; result: { principal: string } }
  "session.open": {
    params: { conversationId?: number | null; agent?: AgentDocument; title?: string | null; requestId?: string | null }
    result: SessionState
  }
  "session.submit": {
    params: {
      conversationId: number
      content: string
      whenBusy?: "followUp" | "steer" | "reject"
      requestId?: string | null
    }
    result: Receipt
  }
  "session.await": { params: { conversationId: number; submissionId: number }; result: Settled }
  "session.cancel": { params: { conversationId: number }; result: { cancelled: boolean } }
  "session.state": { params: { conversationId: number }; result: SessionState }
  "session.list": { params: { limit?: number }; result: ReadonlyArray<SessionSummary> }
  "session.fork": { params: { conversationId: number; entryId?: number | null }; result: SessionState }
  "ui.respond": { params: { questionId: number; answer: unknown; requestId?: string | null }; result: object }
  "node.info": { params: object; result: { name: string; version: string; pid: number; methods: Array<string> } }
}

/** An error that the server answered with. */
export class RpcFailure extends Error {
  readonly code: number
  readonly data: unknown
  constructor(error: { readonly code: number; readonly message: string; readonly data?: unknown }) {
    super(error.message)
    this.code = error.code
    this.data = error.data
  }
}

/** Events that came together. `gap`: what was missed before them is in the snapshot that they begin with. */
export interface Delivery {
  readonly delivery: number
  readonly gap: boolean
  readonly events: ReadonlyArray<Event>
}

interface Watch {
  readonly push: (delivery: Delivery) => void
  readonly end: (error: RpcFailure | null) => void
}

interface Pending {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

export class RpcClient {
  private readonly output: Writable
  private readonly pending = new Map<number, Pending>()
  private readonly watches = new Map<string, Watch>()
  /** Deliveries of watches whose id has not reached its caller yet. */
  private readonly early = new Map<string, Array<Delivery>>()
  private ids = 0

  constructor(input: Readable, output: Writable) {
    this.output = output
    let buffer = ""
    input.setEncoding("utf8")
    input.on("data", (chunk: string) => {
      buffer += chunk
      for (let end = buffer.indexOf("\n"); end >= 0; end = buffer.indexOf("\n")) {
        this.receive(JSON.parse(buffer.slice(0, end)))
        buffer = buffer.slice(end + 1)
      }
    })
    const gone = () => {
      for (const { reject } of this.pending.values()) reject(new Error("the server is gone"))
      this.pending.clear()
      for (const watch of this.watches.values()) watch.end(null)
      this.watches.clear()
    }
    input.on("close", gone)
    output.on("error", gone)
  }

  /** Connects to a unix socket (a path) or to a port of this machine. */
  static connect(address: string | number): Promise<RpcClient> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(
        typeof address === "string" ? { path: address } : { host: "127.0.0.1", port: address },
      )
      socket.once("connect", () => resolve(new RpcClient(socket, socket)))
      socket.once("error", reject)
    })
  }

  request<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    return this.call(method, params) as Promise<Methods[M]["result"]>
  }

  /** Any method, by name. */
  call(method: string, params: object): Promise<unknown> {
    const id = ++this.ids
    return new Promise((resolve, reject) => {
      this.pending.set(id, { resolve, reject })
      this.output.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
    })
  }

  /**
   * What happens in a conversation: a snapshot, or what came after event `after`, then everything that follows. Each delivery is acknowledged
   * when the loop asks for the next one, so a slow loop slows only itself: two deliveries are on their way, the rest waits at the server.
   */
  async *watch(conversationId: number, after: number | null = null): AsyncGenerator<Delivery> {
    const { watchId } = (await this.call("session.watch", { conversationId, after })) as { readonly watchId: string }
    const waiting: Array<Delivery> = this.early.get(watchId) ?? []
    this.early.delete(watchId)
    let ended: { readonly error: RpcFailure | null } | null = null
    let wake = () => {}
    this.watches.set(watchId, {
      push: (delivery) => {
        waiting.push(delivery)
        wake()
      },
      end: (error) => {
        ended = { error }
        wake()
      },
    })
    try {
      for (;;) {
        const next = waiting.shift()
        if (next !== undefined) {
          yield next
          this.notify("session.ack", { watchId, delivery: next.delivery })
          continue
        }
        // `end` sets it from outside of this function.
        const over = ended as { readonly error: RpcFailure | null } | null
        if (over?.error) throw over.error
        if (over !== null) return
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    } finally {
      this.watches.delete(watchId)
      this.notify("session.unwatch", { watchId })
    }
  }

  close(): void {
    this.output.end()
  }

  private notify(method: string, params: object): void {
    if (this.output.writable) this.output.write(`${JSON.stringify({ jsonrpc: "2.0", method, params })}\n`)
  }

  private receive(message: {
    readonly id?: number | null
    readonly result?: unknown
    readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown }
    readonly method?: string
    readonly params?: Delivery & { readonly watchId: string; readonly error: { code: number; message: string } | null }
  }): void {
    const { params } = message
    if (message.method === "session.event" && params !== undefined) {
      const watch = this.watches.get(params.watchId)
      if (watch !== undefined) watch.push(params)
      else this.early.set(params.watchId, [...(this.early.get(params.watchId) ?? []), params])
      return
    }
    if (message.method === "session.watch_ended" && params !== undefined) {
      this.watches.get(params.watchId)?.end(params.error === null ? null : new RpcFailure(params.error))
      return
    }
    const pending = this.pending.get(message.id ?? -1)
    if (pending === undefined) return
    this.pending.delete(message.id ?? -1)
    if (message.error === undefined) pending.resolve(message.result)
    else pending.reject(new RpcFailure(message.error))
  }
}
