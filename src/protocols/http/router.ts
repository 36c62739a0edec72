/**
 * Which route a request is for. Pure. Routes are looked up by their first literal segments as they are few; a path belongs to the group
 * with the longest prefix that fits, and that group words what is wrong with it.
 */
import type { Route, RouteGroup, UpgradeRoute } from "./route.ts"

export type Match =
  | {
      readonly type: "route"
      readonly group: RouteGroup
      readonly route: Route
      readonly params: Readonly<Record<string, string>>
    }
  | { readonly type: "methodNotAllowed"; readonly group: RouteGroup; readonly allow: ReadonlyArray<string> }
  | { readonly type: "notFound"; readonly group: RouteGroup | null }

/** What a pattern's names match, or null where it does not fit. A segment that is not decodable fits nothing. */
export const matchPath = (pattern: string, path: string): Readonly<Record<string, string>> | null => {
  const expected = pattern.split("/")
  const actual = path.split("/")
  if (expected.length !== actual.length) return null
  const params: Record<string, string> = {}
  for (const [index, part] of expected.entries()) {
    const segment = actual[index] ?? ""
    if (!part.startsWith(":")) {
      if (part !== segment) return null
      continue
    }
    if (segment === "") return null
    try {
      params[part.slice(1)] = decodeURIComponent(segment)
    } catch {
      return null
    }
  }
  return params
}

const under = (prefix: string, path: string): boolean =>
  prefix === "/" || path === prefix || path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`)

/** The group that a path belongs to. */
export const groupOf = (groups: ReadonlyArray<RouteGroup>, path: string): RouteGroup | null => {
  let found: RouteGroup | null = null
  let length = 0
  for (const group of groups) {
    for (const prefix of group.prefixes) {
      // The root is nobody's prefix: only its own path belongs to it.
      if (prefix === "/" ? path !== "/" : !under(prefix, path)) continue
      if (prefix.length > length) {
        found = group
        length = prefix.length
      }
    }
  }
  return found
}

/** `HEAD` is answered as `GET` is, without the body. */
export const findRoute = (groups: ReadonlyArray<RouteGroup>, method: string, path: string): Match => {
  const asked = method === "HEAD" ? "GET" : method
  const allow = new Set<string>()
  let owner: RouteGroup | null = null
  for (const group of groups) {
    for (const route of group.routes) {
      const params = matchPath(route.path, path)
      if (params === null) continue
      if (route.method === asked) return { type: "route", group, route, params }
      owner ??= group
      allow.add(route.method)
      if (route.method === "GET") allow.add("HEAD")
    }
  }
  if (owner !== null) return { type: "methodNotAllowed", group: owner, allow: [...allow, "OPTIONS"] }
  return { type: "notFound", group: groupOf(groups, path) }
}

export const findUpgrade = (
  groups: ReadonlyArray<RouteGroup>,
  path: string,
): { readonly group: RouteGroup; readonly route: UpgradeRoute } | null => {
  for (const group of groups) {
    for (const route of group.upgrades ?? []) if (route.path === path) return { group, route }
  }
  return null
}
