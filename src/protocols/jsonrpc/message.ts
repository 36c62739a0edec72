/**
 * JSON-RPC 2.0 messages: from the text of a line to requests, and from answers to the text of a line. Pure. Rules: docs/json-rpc.md.
 */
import { isRecord } from "../../domain/json.ts"

/** Bytes that a line may have: 16 MiB. */
export const maxLine = 16 * 1024 * 1024
/** Levels of arrays and objects that a line may nest. */
export const maxDepth = 256
/** Requests that a batch may have. */
export const maxBatch = 1000

export type Id = string | number | null

/** An error object, as it goes out. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

export const code = {
  parseError: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  unauthenticated: -32001,
  busy: -32002,
  refused: -32003,
  notFound: -32004,
} as const

/** One request of a line. `id` is absent for a notification. `params` is not looked at yet. */
export interface Call {
  readonly type: "call"
  readonly id?: Id
  readonly method: string
  readonly params: unknown
}

/** Something that is not a request; it is answered with `error`. */
export interface Invalid {
  readonly type: "invalid"
  readonly id: Id
  readonly error: RpcError
}

export type Item = Call | Invalid

/** What a line holds. A blank line holds nothing. */
export type Incoming =
  | { readonly type: "nothing" }
  | { readonly type: "single"; readonly item: Item }
  | { readonly type: "batch"; readonly items: ReadonlyArray<Item> }

/** Answers to lines that cannot be read at all. */
export const parseError = (reason: string): Invalid => ({
  type: "invalid",
  id: null,
  error: { code: code.parseError, message: `Parse error: ${reason}`, data: { reason } },
})

const invalidRequest = (id: Id, path: string, expected: string, actual: string): Invalid => ({
  type: "invalid",
  id,
  error: {
    code: code.invalidRequest,
    message: `Invalid Request: ${path}: expected ${expected}, got ${actual}`,
    data: { path, expected, actual },
  },
})

/** A short description of a value for an error: its JSON when short, else its kind. */
export const describe = (value: unknown): string => {
  if (value === undefined) return "nothing"
  if (value === null || typeof value === "number" || typeof value === "boolean") return String(value)
  if (typeof value === "string")
    return value.length <= 60 ? JSON.stringify(value) : `a string of ${value.length} characters`
  if (Array.isArray(value)) return `an array of ${value.length}`
  return "an object"
}

/** An id that comes back as the same text: a string, null, or a number that a double holds exactly. */
const isId = (value: unknown): value is Id =>
  value === null ||
  typeof value === "string" ||
  (typeof value === "number" && Number.isFinite(value) && Math.abs(value) <= Number.MAX_SAFE_INTEGER)

const decodeItem = (value: unknown): Item => {
  if (!isRecord(value)) return invalidRequest(null, "request", "an object", describe(value))
  const hasId = Object.hasOwn(value, "id")
  if (hasId && !isId(value.id)) {
    return invalidRequest(null, "id", "a string, null or a number within ±(2^53-1)", describe(value.id))
  }
  const id: Id = hasId && isId(value.id) ? value.id : null
  if (value.jsonrpc !== "2.0") return invalidRequest(id, "jsonrpc", '"2.0"', describe(value.jsonrpc))
  if (typeof value.method !== "string") return invalidRequest(id, "method", "a string", describe(value.method))
  const params = value.params
  if (Object.hasOwn(value, "params") && !isRecord(params) && !Array.isArray(params)) {
    return invalidRequest(id, "params", "an object", describe(params))
  }
  return { type: "call", ...(hasId ? { id } : {}), method: value.method, params }
}

const quote = 0x22
const backslash = 0x5c

/** Whether text nests deeper than `limit`, counted without parsing it. Brackets within strings do not count. */
export const nestsDeeper = (text: string, limit: number): boolean => {
  if (text.length <= limit) return false
  let depth = 0
  let inString = false
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (inString) {
      if (char === backslash) i++
      else if (char === quote) inString = false
    } else if (char === quote) inString = true
    else if (char === 0x5b || char === 0x7b) {
      if (++depth > limit) return true
    } else if (char === 0x5d || char === 0x7d) depth--
  }
  return false
}

/** The requests of one line. Never throws. */
export const decodeLine = (text: string): Incoming => {
  if (text.trim() === "") return { type: "nothing" }
  if (nestsDeeper(text, maxDepth)) {
    return { type: "single", item: parseError(`nested deeper than ${maxDepth} levels`) }
  }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    return { type: "single", item: parseError(cause instanceof Error ? cause.message : "not JSON") }
  }
  if (!Array.isArray(value)) return { type: "single", item: decodeItem(value) }
  if (value.length === 0 || value.length > maxBatch) {
    return { type: "single", item: invalidRequest(null, "batch", `1 to ${maxBatch} requests`, String(value.length)) }
  }
  return { type: "batch", items: value.map(decodeItem) }
}

/** The answer to a request, without its line end. */
export const renderResult = (id: Id, result: unknown): string =>
  `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${JSON.stringify(result) ?? "null"}}`

export const renderError = (id: Id, error: RpcError): string => JSON.stringify({ jsonrpc: "2.0", id, error })

/** A notification; `params` is JSON text. */
export const renderNotification = (method: string, params: string): string =>
  `{"jsonrpc":"2.0","method":${JSON.stringify(method)},"params":${params}}`

/** The answer to a batch from its answers; null when there is none. */
export const renderBatch = (answers: ReadonlyArray<string>): string | null =>
  answers.length === 0 ? null : `[${answers.join(",")}]`
