/**
 * A login at an MCP server by a person: the browser is sent to the login service, and comes back to a listener on loopback. What the steps
 * leave behind is kept once all went well; a login that fails leaves the one before as it was.
 */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import {
  Client,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client"
import type { JsonObject } from "../../domain/json.ts"
import type { McpHttpServer } from "../../domain/mcp.ts"
import { boundedFetch } from "./bounded-fetch.ts"
import { connectErrorOf, messageOf, statusOf } from "./faults.ts"
import { type LoginProvider, loginProvider } from "./oauth.ts"
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
const listen = async (signal: AbortSignal) => {
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
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo // it listens on TCP
  return { redirectUrl: `http://127.0.0.1:${port}/callback`, params, close: () => server.close() }
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

const transportOf = (server: McpHttpServer, kind: "http" | "sse", authProvider: LoginProvider) => {
  const options = { authProvider, fetch: boundedFetch, requestInit: { headers: { ...server.headers } } }
  const url = new URL(server.url)
  return kind === "http" ? new StreamableHTTPClientTransport(url, options) : new SSEClientTransport(url, options)
}

/** Knocks, so that the server says where its login service is; gives the transport where it wants a login. */
const knock = async (server: McpHttpServer, kind: "http" | "sse", provider: LoginProvider, version: string) => {
  const transport = transportOf(server, kind, provider)
  const client = new Client({ name: "super-pi", version })
  try {
    await client.connect(transport, { timeout: 30_000 })
    return null
  } catch (error) {
    if (error instanceof UnauthorizedError) return transport
    throw error
  } finally {
    await client.close().catch(() => undefined)
  }
}

/** Logs in; rejects with what went wrong. */
export const login = async ({ open, server, signal, tokens, version }: LoginRequest): Promise<LoginOutcome> => {
  const listener = await listen(signal)
  const stage = staged()
  const { name, url } = server
  const provider = loginProvider({
    name,
    url,
    tokens: stage.store,
    interactive: { redirectUrl: listener.redirectUrl, open },
  })
  try {
    const transport = await knock(server, server.transport, provider, version).catch((error: unknown) => {
      const status = statusOf(error)
      if (server.transport === "http" && (status === 404 || status === 405)) {
        return knock(server, "sse", provider, version)
      }
      throw error
    })
    if (transport === null) return "unneeded"
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
