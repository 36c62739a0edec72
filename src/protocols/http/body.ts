/**
 * Request bodies: read once, bounded in bytes and time, and decoded. What all bodies that are being read take together is bounded too.
 */
import type { IncomingMessage } from "node:http"
import { Effect } from "effect"
import { jsonFaultAt, lineAndColumn } from "../../domain/json-fault.ts"
import { nestsDeeper } from "../jsonrpc/message.ts"
import type { Problem } from "./route.ts"

/** Levels of arrays and objects that a body may nest. */
const maxDepth = 256

/** Bytes that are held by bodies of running requests. Owned by the server. */
export interface BodyBudget {
  readonly limit: number
  used: number
}

export interface BodyRules {
  readonly maxBytes: number
  readonly timeoutMs: number
  readonly budget: BodyBudget
  /** Called before the first byte is read: tells a client that waits for it to go on. */
  readonly begin: () => void
}

const tooLarge = (limit: number): Problem => ({
  status: 413,
  code: "body_too_large",
  message: `body: expected at most ${limit} bytes`,
})

const tooSlow = (timeoutMs: number): Problem => ({
  status: 408,
  code: "body_timeout",
  message: `body: expected all of it within ${timeoutMs / 1000} s`,
})

const noMemory: Problem = {
  status: 503,
  code: "busy",
  message: "too many large bodies are being read at once",
  retryAfterMs: 1000,
}

const cutOff: Problem = { status: 400, code: "body_cut_off", message: "body: ended before it was whole" }

const encoded = (encoding: string): Problem => ({
  status: 415,
  code: "body_encoded",
  message: `content-encoding: expected none, got ${JSON.stringify(encoding.slice(0, 60))}`,
})

const readBytes = (incoming: IncomingMessage, rules: BodyRules): Effect.Effect<Uint8Array, Problem> =>
  Effect.async<Uint8Array, Problem>((resume) => {
    const { budget, maxBytes } = rules
    const chunks: Array<Uint8Array> = []
    let size = 0
    const stop = () => {
      budget.used -= size
      incoming.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut)
      incoming.pause()
    }
    const fail = (problem: Problem) => {
      stop()
      resume(Effect.fail(problem))
    }
    const onData = (chunk: Uint8Array) => {
      size += chunk.length
      budget.used += chunk.length
      if (size > maxBytes) return fail(tooLarge(maxBytes))
      if (budget.used > budget.limit) return fail(noMemory)
      chunks.push(chunk)
    }
    const onEnd = () => {
      stop()
      resume(Effect.succeed(chunks.length === 1 ? (chunks[0] ?? new Uint8Array()) : Buffer.concat(chunks)))
    }
    const onCut = () => fail(cutOff)
    if (incoming.readableAborted || incoming.destroyed) {
      resume(incoming.readableEnded ? Effect.succeed(new Uint8Array()) : Effect.fail(cutOff))
      return
    }
    rules.begin()
    incoming.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut)
    return Effect.sync(stop)
  })

/** The body of a request. Asked for again it is the same one. */
export const bodyOf = (incoming: IncomingMessage, rules: BodyRules): Effect.Effect<Uint8Array, Problem> => {
  let read: Uint8Array | null = null
  return Effect.suspend(() => {
    if (read !== null) return Effect.succeed(read)
    const { "content-encoding": encoding = "identity", "content-length": length } = incoming.headers
    if (encoding.toLowerCase() !== "identity") return Effect.fail(encoded(encoding))
    if (Number(length ?? 0) > rules.maxBytes) return Effect.fail(tooLarge(rules.maxBytes))
    return readBytes(incoming, rules).pipe(
      Effect.timeoutFail({ duration: rules.timeoutMs, onTimeout: () => tooSlow(rules.timeoutMs) }),
      Effect.tap((bytes) =>
        Effect.sync(() => {
          read = bytes
        }),
      ),
    )
  })
}

const notJson = (detail: string): Problem => ({
  status: 400,
  code: "not_json",
  message: `body: expected JSON, ${detail}`,
})

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** Pure: the value of a body, or where it stops being one. */
export const decodeJson = (bytes: Uint8Array): Effect.Effect<unknown, Problem> =>
  Effect.suspend(() => {
    let text: string
    try {
      text = utf8.decode(bytes)
    } catch {
      return Effect.fail(notJson("got bytes that are not UTF-8"))
    }
    if (text.trim() === "") return Effect.fail(notJson("got nothing"))
    if (nestsDeeper(text, maxDepth)) return Effect.fail(notJson(`nested at most ${maxDepth} levels deep`))
    try {
      return Effect.succeed(JSON.parse(text) as unknown)
    } catch {
      const { column, line } = lineAndColumn(text, jsonFaultAt(text) ?? text.length)
      return Effect.fail(notJson(`which ends at line ${line}, column ${column}`))
    }
  })
