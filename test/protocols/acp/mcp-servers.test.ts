/** MCP servers as an editor hands them over. */
import { expect, it } from "vitest"
import { serversFault } from "../../../src/domain/mcp-check.ts"
import { mcpServers } from "../../../src/protocols/acp/mcp-servers.ts"

it("all three kinds become servers of the conversation", () => {
  const servers = mcpServers(
    [
      { name: "a", command: "/bin/a", args: ["x"], env: [{ name: "K", value: "v" }] },
      { type: "http", name: "b", url: "https://b.example/mcp", headers: [{ name: "H", value: "h" }] },
      { type: "sse", name: "c", url: "https://c.example/sse", headers: [] },
    ],
    "/work",
  )
  expect(servers).toEqual([
    { name: "a", transport: "stdio", command: "/bin/a", args: ["x"], env: { K: "v" }, cwd: "/work" },
    { name: "b", transport: "http", url: "https://b.example/mcp", headers: { H: "h" } },
    { name: "c", transport: "sse", url: "https://c.example/sse", headers: {} },
  ])
  expect(serversFault(servers)).toBeNull()
})
