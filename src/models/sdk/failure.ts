/**
 * Errors of provider packages and of the network as our typed errors. Packages are loaded lazily and differ in version, so their
 * errors are recognised by shape, not by class. Pure.
 */
import { ContextOverflow, type ModelError, ModelRejected, ModelTransient } from "../model.ts"
import { providerMessage } from "./provider-message.ts"
import { retryAfterMs } from "./retry-after.ts"

/** Nothing came for as long as the stall limit allows. */
export class StreamStalled extends Error {
  override readonly name = "StreamStalled"
  constructor(idleMs: number) {
    super(`no data for ${idleMs} ms`)
  }
}

/** Makes error texts safe to store and show, for example by taking keys out. */
export type Redact = (text: string) => string

interface Shape {
  readonly name?: unknown
  readonly message?: unknown
  readonly code?: unknown
  readonly type?: unknown
  readonly statusCode?: unknown
  readonly responseBody?: unknown
  readonly responseHeaders?: unknown
  readonly cause?: unknown
}

const isShape = (value: unknown): value is Shape => typeof value === "object" && value !== null

const stringOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined)

/** The error and its causes, outermost first. */
const chain = (error: unknown): ReadonlyArray<Shape> => {
  const links: Array<Shape> = []
  let current: unknown = error
  while (isShape(current) && links.length < 10 && !links.includes(current)) {
    links.push(current)
    current = current.cause
  }
  return links
}

const networkCode =
  /^(E(CONN(RESET|REFUSED|ABORTED)|TIMEDOUT|PIPE|HOSTUNREACH|NETUNREACH|AI_AGAIN|NOTFOUND)|UND_ERR_|HPE_|ERR_(TLS|SSL)|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_)/
const networkText = /^(terminated|fetch failed|failed to fetch|other side closed)$/i

const isNetwork = (link: Shape): boolean =>
  (typeof link.code === "string" && networkCode.test(link.code)) ||
  (link.name === "TypeError" && networkText.test(stringOf(link.message) ?? ""))

const unreadable = new Set(["AI_JSONParseError", "AI_TypeValidationError", "AI_InvalidResponseDataError"])

const overflowText =
  /prompt is too long|maximum context length|context[_ -]length[_ -]exceeded|context[_ -]window|exceeds? the context|exceed context limit|exceeds the available context|exceed_context_size|input token count.*exceeds|greater than the context length|maximum prompt length|too many (input )?tokens|input is too long|request_too_large/i

/** Whether a refusal says that the context does not fit. Rate limits speak of tokens as well, hence the status. */
const isOverflow = (status: number | null, text: string): boolean =>
  (status === null || status === 400 || status === 413 || status === 422 || status >= 500) && overflowText.test(text)

/** HTTP status that stands for an error type of a streamed error event. */
const statusOfType = (type: string): number | null => {
  if (/overloaded|unavailable/i.test(type)) return 529
  if (/rate_limit|resource_exhausted/i.test(type)) return 429
  if (/insufficient_quota|billing/i.test(type)) return 402
  if (/authentication|unauthenticated/i.test(type)) return 401
  if (/permission/i.test(type)) return 403
  if (/not_found/i.test(type)) return 404
  if (/timeout|deadline/i.test(type)) return 504
  if (/invalid|context_length|bad_request|failed_precondition|too_large/i.test(type)) return 400
  if (/api_error|server_error|internal/i.test(type)) return 500
  return null
}

const transientReason = (status: number): ModelTransient["reason"] =>
  status === 429 ? "rate_limited" : status === 529 || status === 503 ? "overloaded" : "server_error"

const isTransient = (status: number) =>
  status === 408 || status === 409 || status === 425 || status === 429 || status >= 500

/** A status code, or null for anything that is none. */
const httpStatus = (value: unknown): number | null =>
  typeof value === "number" && Number.isInteger(value) && value >= 100 && value <= 599 ? value : null

/** A 429 that waiting does not cure. */
const isExhausted = (text: string) => /insufficient_quota|billing_hard_limit|credit balance is too low/i.test(text)

/**
 * What an error means for the conversation.
 * @param model `provider/model` that was asked.
 * @param now Milliseconds since the epoch, for `Retry-After` dates.
 */
export const modelError = (model: string, error: unknown, redact: Redact, now: number): ModelError => {
  const transient = (reason: ModelTransient["reason"], detail: string) =>
    new ModelTransient({ model, reason, status: null, retryAfterMs: null, detail: redact(detail) })

  if (typeof error === "string") return transient("server_error", error)
  const links = chain(error)
  const stalled = links.find((link) => link.name === "StreamStalled")
  if (stalled !== undefined) return transient("network", stringOf(stalled.message) ?? "no data")

  const network = links.find(isNetwork)
  const call = links.find((link) => typeof link.statusCode === "number" || typeof link.responseBody === "string")
  const rawStatus = httpStatus(call?.statusCode)
  if (network !== undefined && (rawStatus === null || rawStatus < 300)) {
    const deepest = links.findLast((link) => typeof link.message === "string" && link.message !== "")
    return transient(
      "network",
      `connection failed: ${stringOf(deepest?.message) ?? stringOf(network.code) ?? "unknown"}`,
    )
  }

  const broken = links.find((link) => unreadable.has(stringOf(link.name) ?? ""))
  if (broken !== undefined && (rawStatus === null || rawStatus < 300)) {
    if (/without a finish reason/.test(stringOf(broken.message) ?? "")) return truncated(model)
    return transient("server_error", "the service sent something that could not be read")
  }

  const first = links[0]
  const body = stringOf(call?.responseBody)
  const type = [first?.type, first?.code].filter((value) => typeof value === "string").join(" ")
  const all = `${type} ${body ?? ""}`
  const typed = statusOfType(type === "" ? streamedType(body) : type)
  const status = rawStatus === null || (rawStatus === 500 && typed !== null) ? (typed ?? rawStatus) : rawStatus
  const detail = redact(providerMessage(body, stringOf(first?.message), status))
  if (isOverflow(status, `${all} ${detail}`)) return new ContextOverflow({ model, detail })
  if (status === null) {
    // A refused event without any code: the service gave up on this response.
    return isShape(error) && !(error instanceof Error)
      ? transient("server_error", detail)
      : new ModelRejected({ model, status, detail })
  }
  if (!isTransient(status) || isExhausted(`${all} ${detail}`)) {
    if (status < 300) return transient("network", detail)
    return new ModelRejected({ model, status, detail })
  }
  const headers = isShape(call?.responseHeaders) ? (call.responseHeaders as Record<string, string>) : undefined
  return new ModelTransient({
    model,
    status,
    reason: transientReason(status),
    retryAfterMs: retryAfterMs(headers, body, now),
    detail,
  })
}

/** The error types that a body names, for example `{"type":"overloaded_error"}`. */
const streamedType = (body: string | undefined): string =>
  [...(body ?? "").matchAll(/"(?:type|code|status)"\s*:\s*"([a-zA-Z_]+)"/g)]
    .map(([, type]) => type ?? "")
    .filter((type) => type !== "error")
    .join(" ")

/** A stream that ended without its end marker. */
export const truncated = (model: string): ModelTransient =>
  new ModelTransient({
    model,
    reason: "truncated",
    status: null,
    retryAfterMs: null,
    detail: "the response ended before it was complete",
  })
