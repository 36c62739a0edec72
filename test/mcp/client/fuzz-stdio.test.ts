/**
 * Processes that write what is no answer: it is skipped, or ends that one connection, and the node goes on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import type { CallError } from "../../../src/actors/mcp/connection.ts"
import { openConnection } from "../../../src/actors/mcp/open.ts"
import type { McpServer } from "../../../src/domain/mcp.ts"
import { ask, callOf, isReady, openWith, resultsIn, serverWhen, textOf, withMcpNode, withPlace } from "./node.ts"

const patience = 50_000

const open = (server: McpServer, onLost: (reason: string) => void = () => undefined) =>
  openConnection({
    server,
    root: "/",
    env: process.env,
    startupMs: patience,
    signal: new AbortController().signal,
    tokens: null,
    version: "0",
    onTools: () => undefined,
    onLost,
    log: () => undefined,
  })

const options = () => ({
  signal: AbortSignal.timeout(patience),
  onProgress: () => undefined,
  elicit: null,
  conversation: 1,
})

const id = fc.oneof(fc.integer({ min: 100_000 }), fc.integer({ max: -1 }), fc.string(), fc.constant(null), fc.double())
const message = fc.record(
  {
    jsonrpc: fc.constantFrom("2.0", "1.0", 2),
    id,
    method: fc.constantFrom(
      "ping",
      "roots/list",
      "tools/list",
      "notifications/progress",
      "notifications/cancelled",
      "x",
    ),
    params: fc.oneof(fc.jsonValue(), fc.record({ progressToken: id, progress: fc.double(), requestId: id })),
    result: fc.jsonValue(),
    error: fc.jsonValue(),
  },
  { requiredKeys: [] },
)
/** Lines that are no answer to anything that was asked. */
const junk = fc.oneof(
  fc.string().map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
  fc.oneof(fc.jsonValue(), message).map((value) => Buffer.from(JSON.stringify(value))),
  message.map((value) => Buffer.from(JSON.stringify(value).slice(0, -1))),
  fc.constantFrom("\r", "[]", "[[[[", '{"jsonrpc":"2.0","id":0,"result":{}}', "\u0000", "\ufeff{}").map(Buffer.from),
)

describe("a process that writes nonsense", () => {
  it.live("beside its answers is understood all the same", () =>
    withPlace((place) =>
      Effect.promise(async () => {
        const lost: Array<string> = []
        const connection = await open(place.scripted("one"), (reason) => lost.push(reason))
        const property = fc.asyncProperty(fc.array(junk, { maxLength: 20 }), async (lines) => {
          const before = Buffer.concat(lines.flatMap((line) => [line, Buffer.from("\n")])).toString("base64")
          const answer = await connection.call("read", { before, text: "x" }, options())
          expect(answer).toMatchObject({ content: [{ type: "text", text: "read: x" }] })
        })
        await fc.assert(property, { numRuns: 100 })
        expect(lost).toEqual([])
        await connection.close()
      }),
    ),
  )

  it.live("in a long line that has an end is read, and what is shown of it is bounded", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__read", { length: 9 * 1024 * 1024 })] },
        (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* openWith(sessions)
            yield* ask(sessions, conversationId, "go")
            const text = textOf(resultsIn(yield* sessions.transcript({ conversationId }))[0])
            expect(text).toMatch(/^y+\n\[[\d,]+ more characters were left out\]$/)
            expect(text.length).toBeLessThan(50_000)
            expect(yield* serverWhen(sessions, "one", isReady)).toMatchObject({ restarts: 0 })
          }),
      ),
    ),
  )

  it.live("in a line without end loses that connection; nothing more is read, and everybody else goes on", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        {
          servers: [place.scripted("one", { MCP_BEHAVIOR: "flood" }), place.scripted("two")],
          rules: [
            callOf("^flood", "mcp__one__write", { text: "flood" }),
            callOf("^other", "mcp__two__read", { text: "x" }),
            callOf("^again", "mcp__one__read", { text: "y" }),
          ],
        },
        (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* openWith(sessions)
            const said = (prompt: string) =>
              Effect.gen(function* () {
                yield* ask(sessions, conversationId, prompt)
                return textOf(resultsIn(yield* sessions.transcript({ conversationId })).at(-1))
              })
            yield* serverWhen(sessions, "one", isReady)
            const flooded = yield* said("flood")
            expect(flooded).toContain("a line of the process was longer than 10 MiB")
            expect(flooded).toContain("may or may not have been carried out")
            expect(yield* sessions.effects({})).toHaveLength(1)
            expect(yield* said("other")).toBe("read: x")
            expect(yield* said("again")).toBe("read: y")
            const views = yield* sessions.mcpServers({ conversationId: null })
            expect(views).toMatchObject([
              { name: "one", state: "ready", restarts: 1 },
              { name: "two", state: "ready", restarts: 0 },
            ])
            // It could write as much as the pipe and one read beyond the limit hold.
            const written = place.notes().filter(({ event }) => event === "flood")
            expect(Math.max(...written.map(({ mebibytes }) => Number(mebibytes)))).toBeLessThan(20)
          }),
      ),
    ),
  )

  it.live("as deep as a line allows gives the model an answer, and the node goes on", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        {
          servers: [place.scripted("one")],
          rules: [
            callOf("^some", "mcp__one__read", { deep: 50 }),
            callOf("^much", "mcp__one__read", { deep: 2_000 }),
            callOf("^most", "mcp__one__read", { deep: 1_000_000 }),
            callOf("^then", "mcp__one__read", { text: "x" }),
          ],
        },
        (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* openWith(sessions)
            for (const prompt of ["some", "much", "most", "then"]) yield* ask(sessions, conversationId, prompt)
            const texts = resultsIn(yield* sessions.transcript({ conversationId })).map(textOf)
            expect(texts).toHaveLength(4)
            expect(texts[0]).toContain('{"a":{"a":')
            expect(texts[1]).toBe("(no output)")
            expect(texts[2]).not.toBe("")
            expect(texts[3]).toBe("read: x")
          }),
      ),
    ),
  )

  it.live("instead of the handshake is one that cannot be had", () =>
    withPlace(() =>
      Effect.promise(async () => {
        const script = 'process.stdout.write("x".repeat(11 * 1024 * 1024)); setInterval(() => undefined, 1000)'
        const server: McpServer = { name: "bad", transport: "stdio", command: process.execPath, args: ["-e", script] }
        const failure = await open(server).catch((error: CallError) => error)
        expect(failure).toMatchObject({
          problem: "unreachable",
          message: "a line of the process was longer than 10 MiB",
        })
      }),
    ),
  )
})
