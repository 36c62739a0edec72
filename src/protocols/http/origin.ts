/**
 * From where a request may come. Pure.
 *
 * 1. Without tokens anybody who reaches the port may call, so a web page must not: the `Host` must be a loopback name (a page that
 *    rebinds its own name to 127.0.0.1 sends that name), and an `Origin`, which only web pages send, must be this server's or allowed.
 * 2. With tokens the token decides. Pages of other origins get no CORS headers, so that browsers keep answers from them.
 */

export interface OriginRules {
  readonly tokens: boolean
  /** Exact origins, or `*`. */
  readonly origins: ReadonlyArray<string>
  /** Names besides the loopback ones, or `*`. */
  readonly hosts: ReadonlyArray<string>
}

/** A host without its port and brackets, in lower case. */
const hostName = (host: string): string => {
  const match = /^\[([^\]]*)\](?::\d*)?$/.exec(host) ?? /^([^:]*)(?::\d*)?$/.exec(host)
  return (match?.[1] ?? host).toLowerCase().replace(/\.$/, "")
}

/** Whether only this machine can reach the address or name. */
export const isLoopback = (host: string): boolean => {
  const name = hostName(host)
  return (
    name === "localhost" ||
    host === "::1" ||
    name === "::1" ||
    /^127(?:\.\d{1,3}){3}$/.test(name) ||
    /^::ffff:127\./.test(host)
  )
}

export type OriginVerdict =
  | { readonly ok: true /** The value of `Access-Control-Allow-Origin`, or null. */; readonly cors: string | null }
  | { readonly ok: false; readonly code: "host_not_allowed" | "origin_not_allowed"; readonly message: string }

const quote = (value: string) => JSON.stringify(value.length <= 100 ? value : `${value.slice(0, 100)}…`)

/** Whether a request with these headers may be served. */
export const judgeOrigin = (
  rules: OriginRules,
  host: string | undefined,
  origin: string | undefined,
): OriginVerdict => {
  if (
    !rules.tokens &&
    host !== undefined &&
    !isLoopback(host) &&
    !rules.hosts.some((one) => one === "*" || hostName(one) === hostName(host))
  ) {
    return {
      ok: false,
      code: "host_not_allowed",
      message: `host: expected a loopback name or one of gateway.allowedHosts, got ${quote(host)}`,
    }
  }
  if (origin === undefined) return { ok: true, cors: null }
  if (rules.origins.includes(origin)) return { ok: true, cors: origin }
  if (rules.origins.includes("*")) return { ok: true, cors: rules.tokens ? "*" : origin }
  if (host !== undefined && (origin === `http://${host}` || origin === `https://${host}`))
    return { ok: true, cors: null }
  if (rules.tokens) return { ok: true, cors: null }
  return {
    ok: false,
    code: "origin_not_allowed",
    message: `origin: expected one of gateway.allowedOrigins, got ${quote(origin)}`,
  }
}
