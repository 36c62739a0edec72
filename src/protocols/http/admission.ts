/**
 * What stands between a request's head and its handler: where it comes from, whose it is, which route it is for, and whether its principal
 * may have one more. Synchronous and without I/O: a request that is refused costs no fiber.
 */
import type { IncomingMessage } from "node:http"
import { type Authenticator, bearerToken, localPrincipal } from "../auth/tokens.ts"
import type { HttpLimits } from "./limits.ts"
import { judgeOrigin, type OriginRules } from "./origin.ts"
import { plainProblem, rateLimited, unauthenticated } from "./problems.ts"
import { makeRateTable } from "./rate.ts"
import type { HttpReply, Problem, Route, RouteGroup, UpgradeRoute } from "./route.ts"
import { findRoute, findUpgrade, groupOf } from "./router.ts"

/** Where a request is, once its head was understood. */
export interface Head {
  readonly method: string
  readonly url: URL
  readonly address: string
  readonly incoming: IncomingMessage
}

/** A request that may not be served: who words it, and what is wrong. */
export interface Refusal {
  readonly type: "problem"
  readonly group: RouteGroup | null
  readonly problem: Problem
  readonly principal: string
  readonly cors: string | null
}

export type Admission =
  | Refusal
  | {
      readonly type: "route"
      readonly group: RouteGroup
      readonly route: Route
      readonly params: Readonly<Record<string, string>>
      readonly principal: string
      readonly cors: string | null
    }
  | { readonly type: "preflight"; readonly reply: HttpReply; readonly cors: string | null }

type UpgradeAdmission =
  | Refusal
  | {
      readonly type: "upgrade"
      readonly group: RouteGroup
      readonly route: UpgradeRoute
      readonly principal: string | null
    }

export interface Admissions {
  readonly request: (head: Head, now: number) => Admission
  readonly upgrade: (head: Head, now: number) => UpgradeAdmission
}

/** The path and query of a request line; null where it has none that can be read. */
export const readTarget = (target: string | undefined): URL | null => {
  if (target === undefined || target === "*") return new URL("http://gateway/")
  const absolute = /^https?:\/\/[^/?#]*(.*)$/i.exec(target)
  const path = absolute === null ? target : (absolute[1] ?? "")
  if (absolute === null && !path.startsWith("/")) return null
  try {
    // In front of a path that begins with two slashes an origin would be read from it.
    return new URL(`http://gateway${path.startsWith("/") ? path : `/${path}`}`)
  } catch {
    return null
  }
}

const notFound = (method: string, path: string): Problem => ({
  status: 404,
  code: "not_found",
  message: `there is nothing at ${method} ${path.length <= 100 ? path : `${path.slice(0, 100)}…`}; GET / lists what there is`,
})

const notAllowed = (method: string, allow: ReadonlyArray<string>): Problem => ({
  status: 405,
  code: "method_not_allowed",
  message: `method: expected ${allow.join(" or ")}, got ${method}`,
})

/** What a preflight of an allowed origin is told; anybody else learns the methods only. */
const preflight = (allow: ReadonlyArray<string>, incoming: IncomingMessage, cors: string | null): HttpReply => {
  const asked = String(incoming.headers["access-control-request-headers"] ?? "")
  const headers = /^[\w\-, ]{1,1000}$/.test(asked) ? asked : "authorization, content-type"
  return {
    type: "empty",
    status: 204,
    headers: {
      allow: allow.join(", "),
      ...(cors === null
        ? {}
        : {
            "access-control-allow-methods": allow.join(", "),
            "access-control-allow-headers": headers,
            "access-control-max-age": "600",
          }),
    },
  }
}

export const makeAdmissions = (options: {
  readonly groups: ReadonlyArray<RouteGroup>
  readonly auth: Authenticator
  readonly origins: OriginRules
  readonly limits: HttpLimits
}): Admissions => {
  const { auth, groups, limits, origins } = options
  const requests = makeRateTable({ rate: limits.requestsPerSecond, burst: limits.requestBurst })
  const logins = makeRateTable({ rate: limits.loginsPerMinute / 60, burst: limits.loginsPerMinute })

  /** Whose a request is: null without a token where one is needed; a problem for a wrong one, or for too many of those. */
  const authenticate = ({ address, incoming }: Head, now: number): string | null | Problem => {
    if (!auth.required) return localPrincipal
    const header = incoming.headers.authorization
    if (header === undefined) return null
    const blocked = logins.peek(address, now)
    if (blocked > 0) return rateLimited(blocked)
    const token = bearerToken(header)
    const principal = token === null ? null : auth.principalOf(token)
    if (principal !== null) return principal
    logins.take(address, now)
    return unauthenticated
  }

  const allowOf = (path: string): ReadonlyArray<string> => {
    const match = findRoute(groups, "OPTIONS", path)
    return match.type === "methodNotAllowed" ? match.allow : ["OPTIONS"]
  }

  return {
    request: (head, now) => {
      const { address, incoming, method, url } = head
      const path = url.pathname
      const { host, origin } = incoming.headers
      const judged = judgeOrigin(origins, host, origin)
      const isGroups = origin !== undefined && groupOf(groups, path)?.allowsOrigin?.(origin) === true
      const verdict =
        !judged.ok && judged.code === "origin_not_allowed" && isGroups ? { ok: true as const, cors: origin } : judged
      const refuse = (problem: Problem, principal = "", group = groupOf(groups, path)): Refusal => ({
        type: "problem",
        group,
        problem,
        principal,
        cors: verdict.ok ? verdict.cors : null,
      })
      if (!verdict.ok) return refuse({ status: 403, code: verdict.code, message: verdict.message })
      const { cors } = verdict
      if (method === "OPTIONS") return { type: "preflight", reply: preflight(allowOf(path), incoming, cors), cors }
      const match = findRoute(groups, method, path)
      const open = match.type === "route" && match.route.open === true
      const caller = open ? `address ${address}` : authenticate(head, now)
      if (caller === null) return refuse(unauthenticated)
      if (typeof caller !== "string") return refuse(caller)
      const waitMs = requests.take(caller, now)
      if (waitMs > 0) return refuse(rateLimited(waitMs), caller)
      const principal = open ? (auth.required ? "" : localPrincipal) : caller
      switch (match.type) {
        case "route":
          return { ...match, principal, cors }
        case "methodNotAllowed":
          return refuse(notAllowed(method, match.allow), principal, match.group)
        case "notFound":
          return refuse(notFound(method, path), principal)
      }
    },
    upgrade: (head, now) => {
      const { address, incoming, url } = head
      const { host, origin } = incoming.headers
      const refuse = (problem: Problem): Refusal => ({
        type: "problem",
        group: null,
        problem,
        principal: "",
        cors: null,
      })
      const verdict = judgeOrigin(
        { ...origins, tokens: false, hosts: auth.required ? ["*"] : origins.hosts },
        host,
        origin,
      )
      if (!verdict.ok) return refuse({ status: 403, code: verdict.code, message: verdict.message })
      const found = findUpgrade(groups, url.pathname)
      if (found === null) return refuse(notFound("upgrade of", url.pathname))
      const caller = authenticate(head, now)
      if (caller !== null && typeof caller !== "string") return refuse(caller)
      const waitMs = requests.take(caller ?? `address ${address}`, now)
      if (waitMs > 0) return refuse(rateLimited(waitMs))
      return { type: "upgrade", ...found, principal: caller }
    },
  }
}

/** A problem as its group words it, or plainly. */
export const worded = (group: RouteGroup | null, problem: Problem): HttpReply =>
  (group?.problem ?? plainProblem)(problem)
