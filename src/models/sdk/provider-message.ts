/**
 * The message that a service put into an error body, as one short line. Pure.
 */

const longest = 2_000

/** Fields in which services put their message, in order of preference. */
const messageIn = (value: unknown, depth: number): string | undefined => {
  if (typeof value === "string") return value.trim() === "" ? undefined : value
  if (depth > 4 || typeof value !== "object" || value === null) return undefined
  if (Array.isArray(value)) {
    for (const item of value) {
      const found = messageIn(item, depth + 1)
      if (found !== undefined) return found
    }
    return undefined
  }
  const record = value as Readonly<Record<string, unknown>>
  for (const key of ["error", "message", "detail", "errors", "error_description", "msg"]) {
    const found = messageIn(record[key], depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

const parsed = (body: string): unknown => {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const oneLine = (text: string) => {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > longest ? `${line.slice(0, longest)}…` : line
}

/** A page of HTML says little; its title is the best of it. */
const textOfPage = (body: string): string | undefined => {
  if (!/^\s*<(!doctype|html|\?xml|head|body)/i.test(body)) return body.slice(0, 500)
  return /<title[^>]*>([^<]+)<\/title>/i.exec(body)?.[1]
}

/** The service's own message; else what the client library said; else the status. */
export const providerMessage = (
  body: string | undefined,
  fallback: string | undefined,
  status: number | null,
): string => {
  const json = body === undefined || body.trim() === "" ? undefined : parsed(body)
  const own = json === undefined ? undefined : messageIn(json, 0)
  if (own !== undefined) return oneLine(own)
  if (body !== undefined && body.trim() !== "" && json === undefined) {
    const page = textOfPage(body)
    if (page !== undefined && page.trim() !== "") return oneLine(`HTTP ${status ?? "error"}: ${page}`)
  }
  if (fallback !== undefined && fallback.trim() !== "") return oneLine(fallback)
  return status === null ? "unknown error" : `HTTP ${status}`
}
