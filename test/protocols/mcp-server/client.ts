/**
 * A client of `POST /mcp` as a test writes it: plain requests, with nothing of a client library in between.
 */
import type { McpNode } from "./node.ts"

export interface Answer {
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

export const send = (url: string, body: unknown, headers: Record<string, string> = {}, method = "POST") =>
  fetch(url, {
    method,
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    ...(method === "POST" ? { body: typeof body === "string" ? body : JSON.stringify(body) } : {}),
  })

export const rpc = (id: number | string, method: string, params: object = {}) => ({
  jsonrpc: "2.0",
  id,
  method,
  params,
})
export const hello = (protocolVersion = "2025-11-25") =>
  rpc(0, "initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "test", version: "1" } })

/** The answer in a response: JSON, or the last event of a stream, which a call becomes that takes long. */
export const answerOf = async (response: Response): Promise<Answer> => {
  const text = await response.text()
  if (response.headers.get("content-type")?.startsWith("text/event-stream") !== true) return JSON.parse(text)
  return JSON.parse(
    text
      .split("\n")
      .findLast((line) => line.startsWith("data: "))
      ?.slice(6) ?? "null",
  )
}

/** A session, and what is asked in it. */
export const openSession = async (at: McpNode, headers: Record<string, string> = {}, query = "") => {
  const opened = await send(`${at.url}${query}`, hello(), headers)
  const session = { ...headers, "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" }
  let ids = 0
  const ask = async (method: string, params: object = {}, id: number | string = ++ids) => {
    return answerOf(await send(at.url, rpc(id, method, params), session))
  }
  const call = async (name: string, args: object, id?: number) =>
    (await ask("tools/call", { name, arguments: args }, id)).result ?? {}
  return { ask, call, session, opened: (await opened.json()) as Answer }
}

export const textOf = (result: Record<string, unknown>) =>
  (result.content as ReadonlyArray<{ readonly text: string }>).map(({ text }) => text).join("")

export const modern = (id: number, method: string, params: Record<string, unknown> = {}) =>
  rpc(id, method, {
    ...params,
    _meta: {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
      "io.modelcontextprotocol/clientCapabilities": {},
    },
  })
