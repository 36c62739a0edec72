/**
 * An MCP server over HTTP that misbehaves on order, without any library. It keeps every request that it got.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { Effect } from "effect"

export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage["headers"]
  /** The JSON-RPC method, or null. */
  readonly rpc: string | null
  readonly body: Readonly<Record<string, unknown>> | null
}

type Rpc = { readonly id?: number; readonly method?: string; readonly params?: Readonly<Record<string, unknown>> }

/** Answers the request itself, or gives false. */
export type Trick = (request: Seen, response: ServerResponse, http: ScriptedHttp) => boolean

export interface ScriptedHttp {
  readonly url: string
  readonly seen: ReadonlyArray<Seen>
  /** The session that is good now; another value ends the one before. */
  session: string
}

const readAll = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Buffer> = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString("utf8")
}

const tools = [
  { name: "read", description: "reads", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } },
  { name: "write", description: "writes", inputSchema: { type: "object" } },
]

export const resultFor = ({ id, method, params }: Rpc): unknown => {
  const result =
    method === "initialize"
      ? {
          protocolVersion: params?.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: "web", version: "2" },
        }
      : method === "tools/list"
        ? { tools }
        : { content: [{ type: "text", text: `did ${params?.name}` }] }
  return { jsonrpc: "2.0", id, result }
}

/** Whether the request is the question for the newer protocol, which this server does not know. */
const isProbe = ({ rpc }: Seen): boolean => rpc === "server/discover"

/** One server for the scope; `trick` comes before its own answers. */
export const scriptedHttp = (trick: Trick = () => false) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const seen: Array<Seen> = []
      const http: ScriptedHttp = { url: "", seen, session: "first" }
      const server = createServer((request, response) => {
        void readAll(request).then((text) => {
          const body = text === "" ? null : JSON.parse(text)
          const { headers, method = "GET", url = "/" } = request
          const one: Seen = { method, path: url, headers, rpc: body?.method ?? null, body }
          seen.push(one)
          if (trick(one, response, http)) return
          if (method === "GET") return response.writeHead(405).end()
          if (method === "DELETE") return response.writeHead(200).end()
          if (isProbe(one)) return response.writeHead(400).end()
          const known = headers["mcp-session-id"] === http.session
          if (one.rpc !== "initialize" && !known) return response.writeHead(404).end()
          if (body?.id === undefined) return response.writeHead(202).end()
          const start = one.rpc === "initialize" ? { "mcp-session-id": http.session } : {}
          response.writeHead(200, { "content-type": "application/json", ...start }).end(JSON.stringify(resultFor(body)))
        })
      })
      await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
      Object.assign(http, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` })
      return { http, server }
    }),
    ({ server }) =>
      Effect.promise(() => {
        server.closeAllConnections()
        return new Promise<void>((resolve) => server.close(() => resolve()))
      }),
  ).pipe(Effect.map(({ http }) => http))
