/**
 * A stand-in for the model services on loopback: OpenAI Chat Completions (`…/chat/completions`) and Responses (`…/responses`),
 * Anthropic Messages (`…/messages`), Gemini (`…:streamGenerateContent`). It answers from the same scripts as the scripted model, or
 * from a function that gives each request its reply.
 *
 * To run the command line against it: `SUPER_PI_OPENAI_BASE_URL=<url>/v1`, `SUPER_PI_ANTHROPIC_BASE_URL=<url>`,
 * `SUPER_PI_GEMINI_BASE_URL=<url>/v1beta`, and any key.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import type { Script, ScriptStep } from "../../src/models/providers/script-file.ts"
import { type WireAnswer, type WireKind, wireError, wireFrames } from "./wire-formats.ts"

/** One request as it came in. */
export interface Seen {
  readonly kind: WireKind
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  readonly body: Record<string, unknown>
  /** Resolves when the connection of this request is gone: true when it closed before the reply was complete. */
  readonly closed: Promise<boolean>
}

/** What a request gets. Without `status` it is a stream of `frames`. */
export interface Reply {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly frames?: ReadonlyArray<string>
  /** Sends the stream in pieces of this many bytes, so that characters and events are torn apart. */
  readonly pieceBytes?: number
  /** Milliseconds between pieces. */
  readonly gapMs?: number
  /** After the frames: ends properly (default), breaks the connection, or sends nothing more. */
  readonly ending?: "end" | "cut" | "hang"
}

export interface StandIn {
  /** `http://127.0.0.1:<port>`, without a path. */
  readonly url: string
  readonly requests: ReadonlyArray<Seen>
  /** Resolves with the request of this index as soon as it has come in. */
  readonly request: (index: number) => Promise<Seen>
  readonly close: () => Promise<void>
}

const kindOf = (path: string): WireKind | null => {
  if (path.endsWith("/chat/completions")) return "chat"
  if (path.endsWith("/responses")) return "responses"
  if (path.endsWith("/messages")) return "anthropic"
  return /:streamGenerateContent$/.test(path) ? "gemini" : null
}

interface Turn {
  readonly role: "user" | "assistant" | "other"
  readonly text: string
}

const textIn = (content: unknown): string => {
  if (typeof content === "string") return content
  if (!Array.isArray(content)) return ""
  return content.map((part: { text?: unknown }) => (typeof part?.text === "string" ? part.text : "")).join("")
}

/** The history of a request, as roles and texts; a message of nothing but tool results is no user message. */
const turnsOf = (kind: WireKind, body: Record<string, unknown>): ReadonlyArray<Turn> => {
  const list = (kind === "gemini" ? body.contents : kind === "responses" ? body.input : body.messages) ?? []
  return (list as ReadonlyArray<Record<string, unknown>>).map((item): Turn => {
    const parts = (kind === "gemini" ? item.parts : item.content) as unknown
    const isResult =
      item.role === "tool" ||
      item.type === "function_call_output" ||
      (Array.isArray(parts) && parts.some((part) => part.type === "tool_result" || part.functionResponse !== undefined))
    if (isResult) return { role: "other", text: "" }
    if (item.type === "function_call" || item.role === "assistant" || item.role === "model") {
      return { role: "assistant", text: textIn(parts) }
    }
    return { role: item.role === "user" ? "user" : "other", text: textIn(parts) }
  })
}

/** Answers of a script: the step is the number of answers since the last user message. */
const scripted = (script: Script): ((seen: Seen) => Reply) => {
  const spent = new Map<string, number>()
  return ({ kind, body }) => {
    const turns = turnsOf(kind, body)
    const last = turns.findLastIndex(({ role }) => role === "user")
    const asked = turns[last]?.text ?? ""
    const since = turns.slice(last + 1)
    const step = since.filter(({ role }, i) => role === "assistant" && since[i - 1]?.role !== "assistant").length
    const rule = script.rules.findIndex(({ match }) => new RegExp(match, "s").test(asked))
    const steps = script.rules[rule]?.steps ?? [{ text: `I heard: ${asked}` }]
    const chosen = steps[Math.min(step, steps.length - 1)] ?? steps[0]
    const key = `${rule}/${step}`
    const used = spent.get(key) ?? 0
    const fault =
      (chosen.status ?? chosen.cut ?? chosen.hang) !== undefined && used < (chosen.times ?? Number.POSITIVE_INFINITY)
    if (fault) spent.set(key, used + 1)
    return fault
      ? faultReply(kind, chosen)
      : { frames: wireFrames[kind](answerOf(chosen, step)), gapMs: script.chunkMs ?? 0 }
  }
}

const answerOf = (step: ScriptStep, turn: number): WireAnswer => ({
  text: step.text,
  thinking: step.thinking,
  chunks: step.chunks,
  tools: (step.tools ?? []).map(({ id, name, args }, i) => ({ id: id ?? `call_${turn}_${i}`, name, args: args ?? {} })),
  ...(step.usage === undefined ? {} : { usage: { input: step.usage[0], output: step.usage[1] } }),
})

const faultReply = (kind: WireKind, step: ScriptStep): Reply => {
  if (step.status !== undefined) {
    return {
      status: step.status,
      headers: step.retryAfter === undefined ? {} : { "retry-after": String(step.retryAfter) },
      body: wireError(kind, step.status, step.message ?? `scripted failure ${step.status}`),
    }
  }
  const frames = wireFrames[kind](answerOf({ text: step.text ?? "" }, 0))
  return { frames: frames.slice(0, -2), ending: step.cut === true ? "cut" : "hang" }
}

const pause = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
const flushed = (response: ServerResponse, data: Uint8Array) =>
  new Promise<void>((resolve) => response.write(data, () => resolve()))

const send = async (response: ServerResponse, reply: Reply): Promise<void> => {
  if (reply.status !== undefined) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers })
    response.end(reply.body ?? "")
    return
  }
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache", ...reply.headers })
  response.flushHeaders()
  const size = reply.pieceBytes
  const frames = reply.frames ?? []
  const whole = Buffer.from(frames.join(""), "utf8")
  const pieces =
    size === undefined
      ? frames.map((frame) => Buffer.from(frame, "utf8"))
      : Array.from({ length: Math.ceil(whole.length / size) }, (_, i) => whole.subarray(i * size, (i + 1) * size))
  for (const piece of pieces) {
    if (response.destroyed) return
    await flushed(response, piece)
    if ((reply.gapMs ?? 0) > 0) await pause(reply.gapMs ?? 0)
  }
  if (reply.ending === "cut") response.destroy()
  else if (reply.ending !== "hang") response.end()
}

/** Starts a stand-in on an ephemeral port of the loopback interface. */
export const startStandIn = async (source: Script | ((seen: Seen, index: number) => Reply)): Promise<StandIn> => {
  const replyTo = typeof source === "function" ? source : scripted(source)
  const requests: Array<Seen> = []
  const waiting: Array<() => void> = []
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname
    const kind = kindOf(path)
    let raw = ""
    for await (const chunk of request.setEncoding("utf8")) raw += chunk
    if (kind === null)
      return send(response, { status: 404, body: JSON.stringify({ error: { message: `no ${path}` } }) })
    const closed = new Promise<boolean>((resolve) => {
      response.once("close", () => resolve(!response.writableFinished))
    })
    const seen: Seen = { kind, path, headers: request.headers, body: JSON.parse(raw), closed }
    const index = requests.push(seen) - 1
    for (const wake of waiting.splice(0)) wake()
    return send(response, replyTo(seen, index))
  }
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      if (!response.headersSent) response.writeHead(500)
      response.end(String(error))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    request: async (index) => {
      for (;;) {
        const seen = requests[index]
        if (seen !== undefined) return seen
        await new Promise<void>((resolve) => waiting.push(resolve))
      }
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
