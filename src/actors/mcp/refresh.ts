/**
 * The login of a node at an MCP server: its token with every request, and the refresh where the server does not take it any more.
 *
 * 1. Requests that are refused at the same time share one refresh: a refresh token is good once.
 * 2. A request that went out with another token than the one that is kept now needs no refresh: somebody else was here.
 */
import { type AuthProvider, auth, extractWWWAuthenticateParams } from "@modelcontextprotocol/client"
import type { McpHttpServer } from "../../domain/mcp.ts"
import { sentAuthorization } from "./bounded-fetch.ts"
import { hasLogin, LoginNeeded, loginProvider } from "./oauth.ts"
import type { TokenStore } from "./tokens.ts"

/** Refreshes that run, by name and address of the server. */
const running = new Map<string, Promise<void>>()

type Refused = Parameters<NonNullable<AuthProvider["onUnauthorized"]>>[0]

/** Where somebody has logged in; null: a server that wants a login just says so. */
export const nodeLogin = async (server: McpHttpServer, tokens: TokenStore | null): Promise<AuthProvider | null> => {
  if (tokens === null || !(await hasLogin(tokens, server.name, server.url))) return null
  const provider = loginProvider({ server, tokens, interactive: null })
  const token = async () => (await provider.tokens())?.access_token
  const refresh = async ({ fetchFn, response, serverUrl }: Refused) => {
    const now = await token()
    const sent = sentAuthorization(response)
    if (now !== undefined && sent !== null && sent !== `Bearer ${now}`) return
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    const where = resourceMetadataUrl === undefined ? {} : { resourceMetadataUrl }
    const what = scope === undefined ? {} : { scope }
    const outcome = await auth(provider, { serverUrl, fetchFn, ...where, ...what })
    if (outcome !== "AUTHORIZED") throw new LoginNeeded(server.name)
  }
  return {
    token,
    onUnauthorized: (refused) => {
      const key = JSON.stringify([server.name, server.url])
      const before = running.get(key)
      if (before !== undefined) return before
      const one = refresh(refused).finally(() => running.delete(key))
      running.set(key, one)
      return one
    },
  }
}
