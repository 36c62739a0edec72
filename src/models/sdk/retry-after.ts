/**
 * How long a service asks to wait: `Retry-After` (seconds or an HTTP date), `retry-after-ms`, or Google's `RetryInfo`. Pure.
 */

/** The longest wait that is honoured, in milliseconds. */
const maximum = 60_000

const bounded = (ms: number): number | null =>
  Number.isFinite(ms) && ms >= 0 ? Math.min(maximum, Math.ceil(ms)) : null

const fromHeader = (value: string, now: number): number | null => {
  const text = value.trim()
  if (/^\d+(\.\d+)?$/.test(text)) return bounded(Number(text) * 1_000)
  // `Date.parse` takes nearly anything for a date; an HTTP date starts with the weekday.
  const at = /^[A-Za-z]{3,9},? /.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : bounded(Math.max(0, at - now))
}

/** `{"error":{"details":[{"@type":"…RetryInfo","retryDelay":"34.07s"}]}}` */
const fromBody = (body: string | undefined): number | null => {
  const match = body === undefined ? null : /"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"/.exec(body)
  return match === null ? null : bounded(Number(match[1]) * 1_000)
}

/**
 * Milliseconds to wait, capped at 60,000, or null where the service does not say.
 * @param headers Response headers with lower-case names.
 * @param now Milliseconds since the epoch, for HTTP dates.
 */
export const retryAfterMs = (
  headers: Readonly<Record<string, string>> | undefined,
  body: string | undefined,
  now: number,
): number | null => {
  const precise = headers?.["retry-after-ms"]
  if (precise !== undefined && /^\d+(\.\d+)?$/.test(precise.trim())) return bounded(Number(precise))
  const header = headers?.["retry-after"]
  return (header === undefined ? null : fromHeader(header, now)) ?? fromBody(body)
}
