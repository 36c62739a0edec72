/**
 * Endpoints on the official package: a session of the older protocol, whose requests share a server, and the stateless protocol, where each
 * request gets one of its own. Loaded at the first request.
 */
import { randomUUID } from "node:crypto"
import {
  createMcpHandler,
  isInitializeRequest,
  isLegacyRequest,
  type McpServer,
  type McpServerOptions,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server"
import { Effect } from "effect"
import type { HarnessListing } from "../../../domain/harness-view.ts"
import { isRecord } from "../../../domain/json.ts"
import { type Answers, makeAnswers } from "./answers.ts"
import { buildServer, type Reach } from "./build.ts"
import type { Connection } from "./connection.ts"
import type { Endpoint } from "./http-sessions.ts"

export { isLegacyRequest, makeAnswers }

export interface EndpointParts {
  readonly connection: Connection
  readonly listing: HarnessListing
  readonly answers: Answers
  readonly extend?: ServerExtension | undefined
}

/** What an application adds to the servers that are made. */
export interface ServerExtension {
  readonly options?: McpServerOptions
  readonly register: (server: McpServer, reach: Reach) => void
}

const made = ({ answers, connection, extend, listing }: EndpointParts, reach: Reach): McpServer => {
  const server = buildServer(connection, listing, answers, reach, extend?.options)
  extend?.register(server, reach)
  return server
}

const items = (body: unknown): ReadonlyArray<unknown> => (Array.isArray(body) ? body : [body])

/** Whether a body begins a session. */
export const initializes = (body: unknown): boolean => items(body).some((item) => isInitializeRequest(item))

const asksForLogs = (body: unknown): boolean =>
  items(body).some((item) => isRecord(item) && item.method === "logging/setLevel")

/** The requests that a body gives up. */
const cancelledBy = (body: unknown): ReadonlyArray<string | number> =>
  items(body).flatMap((item) => {
    if (!isRecord(item) || item.method !== "notifications/cancelled" || !isRecord(item.params)) return []
    const { requestId } = item.params
    return typeof requestId === "string" || typeof requestId === "number" ? [requestId] : []
  })

/** A session; `opened` and `closed` are told of its id. */
export const sessionEndpoint = (
  parts: EndpointParts,
  on: { readonly opened: (id: string, endpoint: Endpoint) => void; readonly closed: (id: string) => void },
): Effect.Effect<Endpoint> =>
  Effect.promise(async () => {
    const server = made(parts, { stateless: false, pushes: false })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => on.opened(id, endpoint),
      onsessionclosed: (id) => on.closed(id),
      keepAliveMs: 0,
    })
    const endpoint: Endpoint = {
      handle: async (request, parsedBody) => {
        if (asksForLogs(parsedBody)) parts.connection.wantsLogs = true
        const response = await transport.handleRequest(request, { parsedBody })
        // What was given up is not answered: its stream ends here.
        for (const id of cancelledBy(parsedBody)) transport.closeSSEStream(id)
        return response
      },
      close: () => server.close(),
    }
    server.server.onerror = (error) => parts.answers.note("MCP session", error)
    await server.connect(transport)
    return endpoint
  })

/** The stateless requests of one principal. */
export const statelessEndpoint = (parts: EndpointParts): Endpoint => {
  const handler = createMcpHandler(() => made(parts, { stateless: true, pushes: true }), {
    legacy: "reject",
    keepAliveMs: 0,
    onerror: (error) => parts.answers.note("MCP request", error),
  })
  parts.connection.onStarted = () => handler.notify.resourcesChanged()
  return { handle: (request, parsedBody) => handler.fetch(request, { parsedBody }), close: () => handler.close() }
}
