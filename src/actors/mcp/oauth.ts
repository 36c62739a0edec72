/**
 * The login at one MCP server by OAuth 2.1: authorization code with PKCE, dynamic registration, refresh. The protocol's client does the
 * steps; this keeps what they need between them, in the token store.
 *
 * A node never begins a login, since nobody is there who could finish it: where a refresh does not help, the server needs one.
 */
import { randomUUID } from "node:crypto"
import type { OAuthClientMetadata, OAuthClientProvider } from "@modelcontextprotocol/client"
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts"
import type { TokenStore } from "./tokens.ts"

/** The server wants a login that only a person can do. */
export class LoginNeeded extends Error {
  constructor(server: string) {
    super(`a login is needed: super-pi mcp login ${server}`)
  }
}

export interface LoginOptions {
  readonly name: string
  readonly url: string
  readonly tokens: TokenStore
  /** Where the browser comes back to, and what takes the address that a person opens. Null: in a node. */
  readonly interactive: { readonly redirectUrl: string; readonly open: (url: URL) => void | Promise<void> } | null
}

/** What is asked for where a provider keeps nothing yet. */
type Kept = "client" | "login" | "verifier" | "discovery"

export interface LoginProvider extends OAuthClientProvider {
  /** What the answer of the login must carry. */
  readonly expectedState: string
}

/** A copy as JSON: all of it came as such. */
const asJson = (value: unknown): Json => JSON.parse(JSON.stringify(value)) as Json

/** Registered clients are told this as the place to come back to when only a refresh is wanted; no browser is ever sent there. */
const nowhere = "http://127.0.0.1/callback"

export const loginProvider = ({ interactive, name, tokens, url }: LoginOptions): LoginProvider => {
  const expectedState = randomUUID()
  const keep = async (part: Kept, value: Json | undefined) => {
    const { [part]: _, ...rest } = (await tokens.read(name, url)) ?? {}
    await tokens.write(name, url, value === undefined ? rest : { ...rest, [part]: value })
  }
  const kept = async (part: Kept): Promise<JsonObject | undefined> => {
    const value = (await tokens.read(name, url))?.[part]
    return isJsonObject(value) ? value : undefined
  }
  const redirectUrl = interactive?.redirectUrl ?? nowhere
  const clientMetadata: OAuthClientMetadata = {
    client_name: "Super-Pi",
    redirect_uris: [redirectUrl],
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
  }
  return {
    expectedState,
    redirectUrl,
    clientMetadata,
    state: () => expectedState,
    // What was stored by the methods beside, whose types say what it is.
    clientInformation: async () =>
      (await kept("client")) as Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>,
    saveClientInformation: (client) => keep("client", asJson(client)),
    tokens: async () => (await kept("login")) as Awaited<ReturnType<OAuthClientProvider["tokens"]>>,
    saveTokens: (login) => keep("login", asJson(login)),
    redirectToAuthorization: (address) => {
      if (interactive === null) throw new LoginNeeded(name)
      return interactive.open(address)
    },
    saveCodeVerifier: (verifier) => keep("verifier", { verifier }),
    codeVerifier: async () => String((await kept("verifier"))?.verifier ?? ""),
    saveDiscoveryState: (state) => keep("discovery", asJson(state)),
    discoveryState: async () =>
      (await kept("discovery")) as Awaited<ReturnType<NonNullable<OAuthClientProvider["discoveryState"]>>>,
    invalidateCredentials: async (scope) => {
      if (scope === "all") return tokens.write(name, url, null)
      await keep(scope === "tokens" ? "login" : scope, undefined)
    },
  }
}

/** Whether somebody has logged in at the server. */
export const hasLogin = async (tokens: TokenStore, name: string, url: string): Promise<boolean> =>
  isJsonObject((await tokens.read(name, url))?.login)
