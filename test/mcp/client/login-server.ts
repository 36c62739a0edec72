/**
 * A login service (OAuth 2.1) and an MCP server that asks for its tokens, on two origins, without any library: the tool `read` needs the scope
 * `read`, everything else needs `write`. It checks what a login service has to check, and keeps what it was asked.
 */
import { createHash, randomUUID } from "node:crypto"
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { resultFor } from "./scripted-http.ts"

export interface LoginServer {
  /** Of the MCP server. */
  readonly url: string
  /** Headers of everything that the login service was asked. */
  readonly asked: ReadonlyArray<IncomingHttpHeaders>
  /** Parameters of each visit of the browser, and of each request for tokens. */
  readonly visits: ReadonlyArray<Readonly<Record<string, string>>>
  readonly exchanges: ReadonlyArray<Readonly<Record<string, string>>>
  /** Names of the tools that were called, once for each call that was carried out. */
  readonly calls: ReadonlyArray<unknown>
  /** No access token that was given is good any more; with `all` no refresh token either. */
  readonly expire: (all?: boolean) => void
  /** The next visit of the browser is refused. */
  refuse: boolean
  readonly close: () => Promise<void>
}

const readAll = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const json = (response: ServerResponse, status: number, value: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value))

const listen = async (handle: (request: IncomingMessage, response: ServerResponse, body: string) => void) => {
  const server = createServer((request, response) => {
    void readAll(request).then((body) => handle(request, response, body))
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const close = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

interface Grant {
  readonly client: string
  readonly scope: string
}

export const loginServer = async (): Promise<LoginServer> => {
  const asked: Array<IncomingHttpHeaders> = []
  const visits: Array<Record<string, string>> = []
  const exchanges: Array<Record<string, string>> = []
  const calls: Array<unknown> = []
  const clients = new Map<string, ReadonlyArray<string>>()
  const codes = new Map<string, Grant & { readonly challenge: string; readonly redirect: string }>()
  const refreshes = new Map<string, Grant>()
  const access = new Map<string, Grant>()
  const state = { refuse: false, mcp: "" }

  const give = (response: ServerResponse, grant: Grant) => {
    const [token, refresh] = [randomUUID(), randomUUID()]
    access.set(token, grant)
    refreshes.set(refresh, grant)
    json(response, 200, { access_token: token, refresh_token: refresh, token_type: "Bearer", scope: grant.scope })
  }

  const service = await listen((request, response, body) => {
    asked.push(request.headers)
    const { pathname, searchParams } = new URL(request.url ?? "/", service.origin)
    switch (pathname) {
      case "/.well-known/oauth-authorization-server":
        return json(response, 200, {
          issuer: service.origin,
          authorization_endpoint: `${service.origin}/authorize`,
          token_endpoint: `${service.origin}/token`,
          registration_endpoint: `${service.origin}/register`,
          response_types_supported: ["code"],
          grant_types_supported: ["authorization_code", "refresh_token"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none"],
        })
      case "/register": {
        const wanted = JSON.parse(body)
        const client = randomUUID()
        clients.set(client, wanted.redirect_uris)
        return json(response, 201, { ...wanted, client_id: client })
      }
      case "/authorize": {
        const visit = Object.fromEntries(searchParams)
        visits.push(visit)
        const {
          client_id: client = "",
          code_challenge: challenge = "",
          redirect_uri: redirect = "",
          scope = "",
        } = visit
        if (clients.get(client)?.includes(redirect) !== true) return json(response, 400, { error: "invalid_request" })
        const back = new URL(redirect)
        back.searchParams.set("state", visit.state ?? "")
        if (state.refuse) {
          state.refuse = false
          back.searchParams.set("error", "access_denied")
        } else {
          const code = randomUUID()
          codes.set(code, { client, scope, challenge, redirect })
          back.searchParams.set("code", code)
        }
        return response.writeHead(302, { location: back.href }).end()
      }
      case "/token": {
        const form = Object.fromEntries(new URLSearchParams(body))
        exchanges.push(form)
        const refused = () => json(response, 400, { error: "invalid_grant" })
        if (form.grant_type === "refresh_token") {
          const grant = refreshes.get(form.refresh_token ?? "")
          // Each is good once.
          refreshes.delete(form.refresh_token ?? "")
          return grant === undefined || grant.client !== form.client_id ? refused() : give(response, grant)
        }
        const code = codes.get(form.code ?? "")
        codes.delete(form.code ?? "")
        const proof = createHash("sha256")
          .update(form.code_verifier ?? "")
          .digest("base64url")
        const fits = code?.challenge === proof && code.client === form.client_id && code.redirect === form.redirect_uri
        return code === undefined || !fits ? refused() : give(response, code)
      }
      default:
        return response.writeHead(404).end()
    }
  })

  const server = await listen((request, response, body) => {
    const metadata = `${server.origin}/.well-known/oauth-protected-resource/mcp`
    const challenge = (words: string) => ({ "www-authenticate": `Bearer ${words}, resource_metadata="${metadata}"` })
    if (request.url === "/.well-known/oauth-protected-resource/mcp") {
      const about = { resource: `${server.origin}/mcp`, authorization_servers: [service.origin] }
      return json(response, 200, { ...about, scopes_supported: ["read", "write"] })
    }
    if (request.url !== "/mcp") return response.writeHead(404).end()
    if (request.headers["x-key"] !== "secret") return response.writeHead(403).end()
    const grant = access.get(request.headers.authorization?.replace("Bearer ", "") ?? "")
    if (grant === undefined) return json(response, 401, {}, challenge('scope="read"'))
    if (request.method !== "POST") return response.writeHead(405).end()
    const message = JSON.parse(body)
    if (message.method === "server/discover") return response.writeHead(400).end()
    if (message.id === undefined) return response.writeHead(202).end()
    if (message.method === "tools/call") {
      const tool = message.params.name
      const needed = tool === "read" ? "read" : "write"
      if (!grant.scope.split(" ").includes(needed)) {
        return json(response, 403, {}, challenge(`error="insufficient_scope", scope="${needed}"`))
      }
      calls.push(tool)
    }
    return json(response, 200, resultFor(message))
  })

  return {
    url: `${server.origin}/mcp`,
    asked,
    visits,
    exchanges,
    calls,
    expire: (all = false) => {
      access.clear()
      if (all) refreshes.clear()
    },
    get refuse() {
      return state.refuse
    },
    set refuse(value) {
      state.refuse = value
    },
    close: async () => {
      await service.close()
      await server.close()
    },
  }
}
