/**
 * Clients that give up: what they cancel ends with everything that it started, and what only lost its connection goes on.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { answerOf, modern, openSession, rpc, send, textOf } from "./client.ts"
import { watchedCommand } from "./command.ts"
import { type McpNode, startMcpNode } from "./node.ts"

const auto = { ownMode: "auto", remoteDefaultMode: "auto", remoteMaxMode: "auto" } as const

let node: McpNode
beforeAll(async () => {
  node = await startMcpNode({ service: { remote: auto } })
})
afterAll(() => node.close())

/** Nothing of a client's is at work, and nothing is in doubt. */
const settled = async (): Promise<void> => {
  const left = () => Effect.runPromise(node.sessions.effects({ running: true, principal: "local" }))
  const doubts = () => Effect.runPromise(node.sessions.effects({ principal: "local" }))
  await expect.poll(left, { timeout: 30_000 }).toEqual([])
  expect(await doubts()).toEqual([])
}

describe("a call", { timeout: 60_000 }, () => {
  it("that is cancelled ends with everything that it started, and is not answered", async () => {
    const { command, begun, gone } = watchedCommand(node.directory, "cancelled")
    const { ask, session } = await openSession(node)
    const params = { name: "bash", arguments: { command }, _meta: { progressToken: "p" } }
    const response = await send(node.url, rpc(5, "tools/call", params), session)
    expect(response.headers.get("content-type")).toContain("text/event-stream")
    await begun
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 5 } }
    expect((await send(node.url, cancel, session)).status).toBe(202)
    await gone
    const told = await response.text()
    expect(told).toContain("bash started")
    expect(told).not.toContain('"result"')
    await settled()
    expect((await ask("ping")).result).toEqual({})
  })

  it("of a session that is ended is cancelled", async () => {
    const { command, begun, gone } = watchedCommand(node.directory, "ended")
    const { session } = await openSession(node)
    const params = { name: "bash", arguments: { command } }
    const response = send(node.url, rpc(5, "tools/call", params), session)
    await begun
    expect((await send(node.url, null, session, "DELETE")).status).toBe(200)
    await gone
    await (await response).text()
    await settled()
  })

  it("of the stateless protocol is cancelled when its client leaves", async () => {
    const { command, begun, gone } = watchedCommand(node.directory, "left")
    const head = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "bash" }
    const leaving = new AbortController()
    const left = fetch(node.url, {
      method: "POST",
      headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...head },
      body: JSON.stringify(modern(1, "tools/call", { name: "bash", arguments: { command } })),
      signal: leaving.signal,
    }).then(
      () => "answered",
      () => "left",
    )
    await begun
    leaving.abort()
    expect(await left).toBe("left")
    await gone
    await settled()
    expect(readFileSync(join(node.directory, "left.runs"), "utf8")).toBe("run\n")
  })

  it("of a session goes on when only its connection is gone, and the request again gets its result", async () => {
    const { command, begun, gone } = watchedCommand(node.directory, "away")
    const { session } = await openSession(node)
    const body = JSON.stringify(rpc(5, "tools/call", { name: "bash", arguments: { command } }))
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", ...session }
    const leaving = new AbortController()
    const left = fetch(node.url, { method: "POST", headers, body, signal: leaving.signal }).then(
      () => "answered",
      () => "left",
    )
    await begun
    leaving.abort()
    expect(await left).toBe("left")
    const again = send(node.url, body, session)
    writeFileSync(join(node.directory, "away.go"), "")
    expect(textOf((await answerOf(await again)).result ?? {})).toBe("finished")
    await gone
    expect(readFileSync(join(node.directory, "away.runs"), "utf8")).toBe("run\n")
    await settled()
  })
})
