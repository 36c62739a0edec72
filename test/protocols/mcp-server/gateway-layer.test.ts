/**
 * The MCP server of an application: `Gateway.layer` over a node of its own.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { Effect, Layer } from "effect"
import { describe, expect, it } from "vitest"
import { Gateway, type GatewayLayerOptions, SuperPi } from "../../../src/index.ts"

const node = (builtinTools: boolean | ReadonlyArray<string>) =>
  SuperPi.layer({ storage: "memory", builtinTools, defaults: { model: "mock/echo" } })

/** What a client learns of a gateway with these options. */
const learn = <A>(
  options: Omit<GatewayLayerOptions, "port">,
  builtinTools: boolean | ReadonlyArray<string>,
  ask: (client: Client, url: URL) => Promise<A>,
): Promise<A> =>
  Effect.gen(function* () {
    const { url: base } = yield* Gateway
    const url = new URL(`${base}/mcp`)
    const client = new Client({ name: "test", version: "1" })
    return yield* Effect.promise(async () => {
      await client.connect(new StreamableHTTPClientTransport(url))
      try {
        return await ask(client, url)
      } finally {
        await client.close()
      }
    })
  }).pipe(
    Effect.provide(Layer.provideMerge(Gateway.layer({ port: 0, ...options }), node(builtinTools))),
    Effect.runPromise,
  )

const names = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)

describe("the gateway of an application", () => {
  it("offers the tools that its node has, with and without a harness", async () => {
    expect(await learn({}, ["read", "ls"], names)).toEqual(["read", "ls", "harness_task"])
    expect(await learn({ mcp: { harness: "planner" } }, true, names)).toEqual([
      ...["read", "grep", "find", "ls", "harness_task"],
    ])
    expect(await learn({}, false, names)).toEqual(["harness_task"])
  })

  it("makes direct calls and works on tasks", async () => {
    const [listed, done] = await learn({ mcp: { harness: "super-pi-code" } }, true, async (client) => [
      await client.callTool({ name: "ls", arguments: {} }),
      await client.callTool({ name: "harness_task", arguments: { prompt: "hello there" } }),
    ])
    expect(listed?.structuredContent).toMatchObject({ path: "." })
    expect(JSON.stringify(done?.content)).toContain("hello there")
  })

  it("has as many sessions as its option says", async () => {
    const refused = await learn({ mcp: { maxSessions: 1 } }, false, (_, url) =>
      new Client({ name: "second", version: "1" }).connect(new StreamableHTTPClientTransport(url)).then(
        () => "taken",
        (error: unknown) => String(error),
      ),
    )
    expect(refused).toContain("too many sessions")
  })
})
