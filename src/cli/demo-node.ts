/**
 * A real node in a process of its own, driven over JSON-RPC on its stdio: what the demonstration kills.
 */
import { type ChildProcessByStdio, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import type { Readable, Writable } from "node:stream"
import { Schema } from "effect"
import { Event } from "../domain/event.ts"

const Answer = Schema.Struct({
  id: Schema.Number,
  result: Schema.optional(Schema.Unknown),
  error: Schema.optional(Schema.Struct({ code: Schema.Number, message: Schema.String })),
})
const Notification = Schema.Struct({
  method: Schema.String,
  params: Schema.Struct({ watchId: Schema.String, delivery: Schema.Number, events: Schema.Array(Event) }),
})
const readAnswer = Schema.decodeUnknownOption(Answer)
const readNotification = Schema.decodeUnknownOption(Notification)

export interface DemoNode {
  readonly pid: number
  readonly call: <A, I>(method: string, params: object, result: Schema.Schema<A, I>) => Promise<A>
  /** Ends it as a crash would; resolves to the signal that ended it. */
  readonly kill: () => Promise<string | null>
  /** Ends it cleanly; resolves to its exit code. */
  readonly stop: () => Promise<number | null>
}

interface Waiting {
  readonly resolve: (result: unknown) => void
  readonly reject: (error: Error) => void
}

/** Starts a node; `onEvent` gets the events of what is watched, in order. */
export const startNode = (
  command: {
    readonly file: string
    readonly args: ReadonlyArray<string>
    readonly env: NodeJS.ProcessEnv
    readonly cwd: string
  },
  onEvent: (event: Event) => void,
): DemoNode => {
  const child: ChildProcessByStdio<Writable, Readable, Readable> = spawn(command.file, [...command.args], {
    cwd: command.cwd,
    env: command.env,
    stdio: ["pipe", "pipe", "pipe"],
  })
  const waiting = new Map<number, Waiting>()
  let next = 1
  let complaints = ""
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaints = (complaints + text).slice(-2000)
  })
  // A write to a killed process fails; its end is what counts.
  child.stdin.on("error", () => {})
  const ended = new Promise<{ readonly code: number | null; readonly signal: string | null }>((resolve) => {
    const end = (code: number | null, signal: string | null) => {
      for (const one of waiting.values())
        one.reject(new Error(`the node ended (${signal ?? `code ${code}`}): ${complaints.trim()}`))
      waiting.clear()
      resolve({ code, signal })
    }
    child.on("close", end)
    child.on("error", (error) => {
      complaints += error.message
      end(null, null)
    })
  })
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  createInterface({ input: child.stdout }).on("line", (line) => {
    const message: unknown = JSON.parse(line)
    const notification = readNotification(message)
    if (notification._tag === "Some") {
      const { watchId, delivery, events } = notification.value.params
      send({ method: "session.ack", params: { watchId, delivery } })
      for (const event of events) onEvent(event)
      return
    }
    const answer = readAnswer(message)
    if (answer._tag === "None") return
    const { id, result, error } = answer.value
    const one = waiting.get(id)
    waiting.delete(id)
    if (error === undefined) one?.resolve(result)
    else one?.reject(new Error(error.message))
  })
  return {
    pid: child.pid ?? 0,
    call: async (method, params, result) => {
      const id = next++
      const answer = await new Promise<unknown>((resolve, reject) => {
        waiting.set(id, { resolve, reject })
        send({ id, method, params })
      })
      return Schema.decodeUnknownPromise(result)(answer)
    },
    kill: async () => {
      child.kill("SIGKILL")
      return (await ended).signal
    },
    stop: async () => {
      child.stdin.end()
      return (await ended).code
    },
  }
}
