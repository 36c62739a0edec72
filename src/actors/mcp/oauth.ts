/**
 * The login at one MCP server by OAuth 2.1: authorization code with PKCE, dynamic registration, refresh. The protocol's client does the
 * steps; this keeps what they need between them, in the token store.
 *
 * A node never begins a login, since nobody is there who could finish it: where a refresh does not help, the server needs one.
 */
import { randomUUID } from "node:crypto"
import type { OAuthClientMetadata, OAuthClientProvider } from "@modelcontextprotocol/client"
import { isJsonObject, type Json, type JsonObject } from "../../domain/json.ts"
import type { McpHttpServer } from "../../domain/mcp.ts"
import type { TokenStore } from "./tokens.ts"

/** The server wants a login that only a person can do. */
export class LoginNeeded extends Error {
  constructor(server: string) {
    super(`a login is needed: super-pi mcp login ${server}`)
  }
}

interface LoginOptions {
  readonly server: McpHttpServer
  readonly tokens: TokenStore
  /** Where the browser comes back to, what takes the address that a person opens, and scopes to ask for. Null: in a node. */
  readonly interactive: {
    readonly redirectUrl: string
    readonly open: (url: URL) => void | Promise<void>
    readonly wanted: string
  } | null
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

/** Scopes of several lists, each once. */
const scopesOf = (...lists: ReadonlyArray<Json | undefined>): string =>
  [...new Set(lists.flatMap((list) => (typeof list === "string" ? list.split(" ") : [])))].filter(Boolean).join(" ")

/** An id that is an https address stands for a document that describes the client: nobody has to register it. */
const isDocument = (clientId: string): boolean => URL.canParse(clientId) && new URL(clientId).protocol === "https:"

export const loginProvider = ({ interactive, server, tokens }: LoginOptions): LoginProvider => {
  const { name, oauth, url } = server
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
  const registered = oauth === undefined || isDocument(oauth.clientId) ? null : oauth
  /** What is known of the client beside its secret: to which login service it belongs. */
  const clientInformation = async () => {
    const client = await kept("client")
    if (registered === null) return client
    const { clientId: client_id, clientSecret: client_secret } = registered
    const own = client?.client_id === client_id ? client : {}
    return { ...own, client_id, ...(client_secret === undefined ? {} : { client_secret }) }
  }
  return {
    expectedState,
    ...(oauth !== undefined && registered === null ? { clientMetadataUrl: oauth.clientId } : {}),
    redirectUrl,
    clientMetadata,
    state: () => expectedState,
    // What was stored by the methods beside, whose types say what it is.
    clientInformation: async () =>
      (await clientInformation()) as Awaited<ReturnType<OAuthClientProvider["clientInformation"]>>,
    saveClientInformation: (client) => {
      const { client_secret: _, ...rest } = client
      return keep("client", asJson(registered === null ? client : rest))
    },
    tokens: async () => (await kept("login")) as Awaited<ReturnType<OAuthClientProvider["tokens"]>>,
    saveTokens: (login) => keep("login", asJson(login)),
    redirectToAuthorization: (address) => {
      if (interactive === null) throw new LoginNeeded(name)
      const { wanted } = interactive
      const scope = scopesOf(address.searchParams.get("scope") ?? undefined, wanted)
      if (wanted !== "" && scope !== "") address.searchParams.set("scope", scope)
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

/** Notes that a login has to ask for more than the one before. */
export const wantScope = async (tokens: TokenStore, { name, url }: McpHttpServer, scope: string): Promise<void> => {
  const before = (await tokens.read(name, url)) ?? {}
  await tokens.write(name, url, { ...before, wanted: scopesOf(before.wanted, scope) })
}

/** Scopes that the next login has to ask for beside those that the server names: "" where nothing was missing. */
export const wantedScope = async (tokens: TokenStore, { name, url }: McpHttpServer): Promise<string> => {
  const { login, wanted } = (await tokens.read(name, url)) ?? {}
  return wanted === undefined ? "" : scopesOf(isJsonObject(login) ? login.scope : undefined, wanted)
}
