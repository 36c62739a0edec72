/**
 * A JSON-RPC client for tests: sends lines, hands out the lines that come back in order, one awaited at a time.
 */
import { createConnection } from "node:net"
import type { Readable, Writable } from "node:stream"

export interface LineClient {
  /** Sends text as it is. */
  readonly send: (text: string | Uint8Array) => void
  /** Sends a request with a fresh id and waits for its answer; other lines are kept for `next`. */
  readonly request: (method: string, params?: unknown) => Promise<Answer>
  /** The next line that is not the answer to a `request`; null at the end. */
  readonly next: () => Promise<Answer | null>
  /** Ends the sending side. */
  readonly end: () => void
  readonly destroy: () => void
  /** Stops and starts reading. */
  readonly pause: () => void
  readonly resume: () => void
}

/** A line as it came, loosely typed: an answer, a notification, or (an array) a batch's answer. */
export interface Answer {
  readonly jsonrpc: "2.0"
  readonly id?: string | number | null
  readonly result?: { readonly [key: string]: unknown }
  readonly error?: {
    readonly code: number
    readonly message: string
    readonly data?: { readonly [key: string]: unknown }
  }
  readonly method?: string
  readonly params?: {
    readonly watchId: string
    readonly delivery: number
    readonly gap: boolean
    readonly events: ReadonlyArray<{ readonly type: string; readonly text?: string; readonly seq_no: number }>
    readonly error: unknown
  }
}

export const lineClient = (input: Readable, output: Writable): LineClient => {
  const lines: Array<Answer> = []
  const readers: Array<(line: Answer | null) => void> = []
  const answers = new Map<string, (answer: Answer) => void>()
  let ended = false
  let buffer = ""
  let ids = 0
  input.setEncoding("utf8")
  input.on("data", (chunk: string) => {
    buffer += chunk
    for (let end = buffer.indexOf("\n"); end !== -1; end = buffer.indexOf("\n")) {
      const line: Answer = JSON.parse(buffer.slice(0, end))
      buffer = buffer.slice(end + 1)
      const answered = typeof line.id === "string" ? answers.get(line.id) : undefined
      if (answered !== undefined) {
        answers.delete(String(line.id))
        answered(line)
      } else {
        const reader = readers.shift()
        if (reader) reader(line)
        else lines.push(line)
      }
    }
  })
  const finish = () => {
    ended = true
    for (const reader of readers.splice(0)) reader(null)
  }
  input.on("end", finish)
  input.on("close", finish)
  input.on("error", finish)
  output.on("error", () => undefined)
  return {
    send: (text) => void output.write(text),
    request: (method, params) =>
      new Promise((resolve) => {
        const id = `r${++ids}`
        answers.set(id, resolve)
        output.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`)
      }),
    next: () =>
      new Promise((resolve) => {
        const line = lines.shift()
        if (line !== undefined) resolve(line)
        else if (ended) resolve(null)
        else readers.push(resolve)
      }),
    end: () => void output.end(),
    destroy: () => {
      input.destroy()
      output.destroy()
    },
    pause: () => void input.pause(),
    resume: () => void input.resume(),
  }
}

/** Connects to a unix socket or a loopback port. */
export const connect = (address: string | number): Promise<LineClient> =>
  new Promise((resolve, reject) => {
    const socket =
      typeof address === "string"
        ? createConnection({ path: address, allowHalfOpen: true })
        : createConnection({ host: "127.0.0.1", port: address, allowHalfOpen: true })
    socket.once("connect", () => resolve(lineClient(socket, socket)))
    socket.once("error", reject)
  })
