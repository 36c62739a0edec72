/**
 * `${NAME}` in configured values, replaced from the environment when a server is started. Pure.
 */
import type { McpServer } from "../../domain/mcp.ts"

const placeholder = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The values with every placeholder replaced, or the names of the variables that are not set, each once. */
const expand = (
  values: Readonly<Record<string, string>>,
  env: Readonly<Record<string, string | undefined>>,
):
  | { readonly missing: ReadonlyArray<string> }
  | { readonly missing: null; readonly values: Readonly<Record<string, string>> } => {
  const missing = new Set<string>()
  const entries = Object.entries(values).map(([key, value]): [string, string] => [
    key,
    value.replace(placeholder, (all, name: string) => {
      const found = Object.hasOwn(env, name) ? env[name] : undefined
      if (found === undefined) missing.add(name)
      return found ?? all
    }),
  ])
  return missing.size > 0 ? { missing: [...missing] } : { missing: null, values: Object.fromEntries(entries) }
}

/** A configured server as it is started, or why it cannot be. */
export const resolveServer = (
  server: McpServer,
  env: Readonly<Record<string, string | undefined>>,
): McpServer | { readonly problem: string } => {
  const problem = (field: string, missing: ReadonlyArray<string>) => ({
    problem: `${field}: expected variables that are set, but ${missing.join(", ")} ${missing.length === 1 ? "is" : "are"} not`,
  })
  if (server.transport === "stdio") {
    const expanded = expand(server.env ?? {}, env)
    return expanded.missing === null ? { ...server, env: expanded.values } : problem("env", expanded.missing)
  }
  const headers = expand(server.headers ?? {}, env)
  if (headers.missing !== null) return problem("headers", headers.missing)
  const { oauth } = server
  const { clientSecret } = oauth ?? {}
  if (oauth === undefined || clientSecret === undefined) return { ...server, headers: headers.values }
  const secret = expand({ clientSecret }, env)
  if (secret.missing !== null) return problem("oauth.clientSecret", secret.missing)
  return { ...server, headers: headers.values, oauth: { ...oauth, ...secret.values } }
}
