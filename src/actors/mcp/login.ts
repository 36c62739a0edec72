/**
 * A login at an MCP server by a person: the browser is sent to the login service, and comes back to a listener on loopback. What the steps
 * leave behind is kept once all went well; a login that fails leaves the one before as it was.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  auth,
  Client,
  discoverOAuthProtectedResourceMetadata,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client"
import type { JsonObject } from "../../domain/json.ts"
import type { McpHttpServer } from "../../domain/mcp.ts"
import { fetchFor } from "./bounded-fetch.ts"
import { connectErrorOf, messageOf, statusOf } from "./faults.ts"
import { type LoginProvider, loginProvider, wantedScope } from "./oauth.ts"
import type { TokenStore } from "./tokens.ts"

export interface LoginRequest {
  /** With every placeholder replaced. */
  readonly server: McpHttpServer
  readonly tokens: TokenStore
  readonly version: string
  /** Shows the address to the person. */
  readonly open: (url: URL) => void
  /** Gives up. */
  readonly signal: AbortSignal
}

/** `unneeded`: the server lets us in without. */
export type LoginOutcome = "done" | "unneeded"

const page = (words: string) =>
  `<!doctype html><meta charset="utf-8"><title>Super-Pi</title><p style="font-family: sans-serif">${words}</p>`

/** A listener for the browser's way back, and the parameters that it comes with. */
const listen = async (signal: AbortSignal, port: number) => {
  let came: (params: URLSearchParams) => void = () => undefined
  const params = new Promise<URLSearchParams>((resolve, reject) => {
    came = resolve
    signal.addEventListener("abort", () => reject(new Error("the login was given up")), { once: true })
  })
  params.catch(() => undefined)
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://127.0.0.1")
    if (url.pathname !== "/callback") return response.writeHead(404).end()
    const failed = url.searchParams.has("error")
    const words = failed ? "The login failed; see the terminal." : "You are logged in. This window can be closed."
    response.writeHead(200, { "content-type": "text/html; charset=utf-8", connection: "close" }).end(page(words))
    came(url.searchParams)
  })
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve))
  const { port: own } = server.address() as AddressInfo // it listens on TCP
  return { redirectUrl: `http://127.0.0.1:${own}/callback`, params, close: () => server.close() }
}

/** Keeps in memory what is to be kept when all is done. */
const staged = () => {
  let value: JsonObject | null = null
  const store: TokenStore = {
    read: async () => value,
    write: async (_name, _url, login) => {
      value = login
    },
  }
  return { store, value: () => value }
}

type Kind = "http" | "sse"

const transportOf = (server: McpHttpServer, kind: Kind, authProvider: LoginProvider) => {
  const options = { authProvider, fetch: fetchFor(server) }
  const url = new URL(server.url)
  return kind === "http" ? new StreamableHTTPClientTransport(url, options) : new SSEClientTransport(url, options)
}

interface Knocked {
  readonly transport: ReturnType<typeof transportOf>
  /** The browser was sent to the login service. */
  readonly sent: boolean
}

/** How long the server may take to say whether it wants a login, in ms. */
const knockMs = 30_000

/** Knocks as a connection does, so that the server says where its login service is and what a login has to allow. */
const knock = async (
  server: McpHttpServer,
  kind: Kind,
  mode: "auto" | "legacy",
  provider: LoginProvider,
  version: string,
): Promise<Knocked> => {
  const transport = transportOf(server, kind, provider)
  const client = new Client({ name: "super-pi", version }, { versionNegotiation: { mode } })
  try {
    await client.connect(transport, { timeout: knockMs })
    if (client.getServerCapabilities()?.tools !== undefined) await client.listTools({}, { timeout: knockMs })
    return { transport, sent: false }
  } catch (error) {
    if (error instanceof UnauthorizedError) return { transport, sent: true }
    throw error
  } finally {
    await client.close().catch(() => undefined)
  }
}

/** In the ways in which a connection is made (open.ts). */
const knockAll = async (server: McpHttpServer, provider: LoginProvider, version: string): Promise<Knocked> => {
  if (server.transport === "sse") return knock(server, "sse", "legacy", provider, version)
  try {
    return await knock(server, "http", "auto", provider, version)
  } catch (error) {
    const status = statusOf(error)
    if (status === null) throw error
    const kind = status === 404 || status === 405 ? "sse" : "http"
    return knock(server, kind, "legacy", provider, version)
  }
}

/** Sends the browser where a server lets everybody in at first, and has a login service. */
const sendAnyway = async (server: McpHttpServer, provider: LoginProvider): Promise<boolean> => {
  const fetchFn = fetchFor(server)
  const found = await discoverOAuthProtectedResourceMetadata(server.url, {}, fetchFn).catch(() => null)
  return found !== null && (await auth(provider, { serverUrl: server.url, fetchFn })) === "REDIRECT"
}

/** Logs in; rejects with what went wrong. */
export const login = async ({ open, server, signal, tokens, version }: LoginRequest): Promise<LoginOutcome> => {
  const { name, oauth, url } = server
  const listener = await listen(signal, oauth?.callbackPort ?? 0)
  const stage = staged()
  try {
    const { redirectUrl } = listener
    const wanted = await wantedScope(tokens, server)
    const provider = loginProvider({ server, tokens: stage.store, interactive: { redirectUrl, open, wanted } })
    const { sent, transport } = await knockAll(server, provider, version)
    if (!sent && !(await sendAnyway(server, provider))) return "unneeded"
    const params = await listener.params
    if (params.get("state") !== provider.expectedState) throw new Error("the answer is not to this login (state)")
    const refused = params.get("error")
    if (refused !== null) throw new Error(`${refused}: ${params.get("error_description") ?? "the login was refused"}`)
    await transport.finishAuth(params)
    await tokens.write(name, url, stage.value())
    return "done"
  } catch (error) {
    throw new Error(messageOf(error instanceof Error ? error : connectErrorOf(error)))
  } finally {
    listener.close()
  }
}
