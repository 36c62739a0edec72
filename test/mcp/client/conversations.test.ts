/**
 * What a conversation may do with the tools of MCP servers, and servers that conversations bring along.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { AgentDocument } from "../../../src/domain/document.ts"
import {
  ask,
  callOf,
  isReady,
  offeredIn,
  openWith,
  resultsIn,
  serverWhen,
  textOf,
  withMcpNode,
  withPlace,
} from "./node.ts"

const rules = [
  callOf("^read", "mcp__one__read", { text: "x" }),
  callOf("^write", "mcp__one__write", { text: "x" }),
  callOf("^search", "tool_search", { query: "write" }),
  { match: "", steps: [{ text: "hi" }] },
]

/** What comes of a reading and a writing call. */
const tried = (agent: AgentDocument) =>
  withPlace((place) =>
    withMcpNode(place, { servers: [place.scripted("one")], rules }, (sessions) =>
      Effect.gen(function* () {
        const id = yield* openWith(sessions, { ...agent, plugins: ["permissions"] })
        yield* ask(sessions, id, "read")
        yield* ask(sessions, id, "write")
        const [read, write] = resultsIn(yield* sessions.transcript({ conversationId: id }))
        return [textOf(read), textOf(write)]
      }),
    ),
  )

const network = (value: string): AgentDocument => ({
  mode: "auto",
  settingsOverride: { permissions: { network: value } },
})

describe("permissions of MCP tools", () => {
  it.live("in the mode plan only those run that their server says read only", () =>
    Effect.map(tried({ mode: "plan" }), ([read, write]) => {
      expect(read).toBe("read: x")
      expect(write).toMatch(/plan/)
    }),
  )

  it.live("in the mode accept-edits any other needs a person, and is blocked where there is none", () =>
    Effect.map(tried({ mode: "accept-edits" }), ([read, write]) => {
      expect(read).toBe("read: x")
      expect(write).not.toBe("write: x")
    }),
  )

  it.live("in the mode auto all run", () =>
    Effect.map(tried({ mode: "auto" }), (texts) => expect(texts).toEqual(["read: x", "write: x"])),
  )

  it.live("the policy for the network counts for processes too", () =>
    Effect.gen(function* () {
      for (const policy of ["deny", "allowlist"]) {
        const [read, write] = yield* tried(network(policy))
        expect(read).toMatch(/network/i)
        expect(write).toMatch(/network/i)
      }
    }),
  )

  it.live("a workspace without a network does not offer them", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions, { workspace: { kind: "local", network: false } })
          yield* ask(sessions, id, "hello")
          expect(offeredIn(yield* sessions.transcript({ conversationId: id }))).toEqual(["echo"])
        }),
      ),
    ),
  )
})

describe("deferred tools", () => {
  it.live("are offered once a search has found them, also after a restart of the node", () =>
    withPlace((place) =>
      Effect.gen(function* () {
        const options = { servers: [place.scripted("one")], rules, exposure: "deferred" as const }
        const id = yield* withMcpNode(place, options, (sessions) =>
          Effect.gen(function* () {
            const conversation = yield* openWith(sessions)
            yield* ask(sessions, conversation, "hello")
            const before = offeredIn(yield* sessions.transcript({ conversationId: conversation }))
            expect(before).toEqual(["echo", "tool_search"])
            yield* ask(sessions, conversation, "search")
            const after = yield* sessions.transcript({ conversationId: conversation })
            expect(textOf(resultsIn(after)[0])).toContain("mcp__one__write")
            expect(offeredIn(after)).toEqual(["echo", "tool_search", "mcp__one__write"])
            return conversation
          }),
        )
        yield* withMcpNode(place, options, (sessions) =>
          Effect.gen(function* () {
            yield* ask(sessions, id, "write")
            const entries = yield* sessions.transcript({ conversationId: id })
            expect(textOf(resultsIn(entries)[1])).toBe("write: x")
            expect(offeredIn(entries)).toEqual(["echo", "tool_search", "mcp__one__write"])
          }),
        )
      }),
    ),
  )
})

describe("servers that a conversation brings along", () => {
  it.live("are its own, are there again after a restart of the node, and end with it", () =>
    withPlace((place) =>
      Effect.gen(function* () {
        const id = yield* withMcpNode(place, { rules }, (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* openWith(sessions)
            const views = yield* sessions.addMcpServers({ conversationId, servers: [place.scripted("one")] })
            expect(views).toMatchObject([{ name: "one", conversation_id: conversationId, state: "connecting" }])
            yield* ask(sessions, conversationId, "read")
            const other = yield* openWith(sessions)
            yield* ask(sessions, other, "hello")
            expect(offeredIn(yield* sessions.transcript({ conversationId: other }))).toEqual(["echo"])
            expect(yield* sessions.mcpServers({ conversationId: null })).toEqual([])
            return conversationId
          }),
        )
        yield* withMcpNode(place, { rules }, (sessions) =>
          Effect.gen(function* () {
            yield* ask(sessions, id, "write")
            const results = resultsIn(yield* sessions.transcript({ conversationId: id }))
            expect(results.map(textOf)).toEqual(["read: x", "write: x"])
            // The same once more changes nothing, another list takes them away.
            const before = place.notes().filter(({ event }) => event === "started").length
            yield* sessions.addMcpServers({ conversationId: id, servers: [place.scripted("one")] })
            yield* serverWhen(sessions, "one", isReady, id)
            expect(place.notes().filter(({ event }) => event === "started")).toHaveLength(before)
            expect(yield* sessions.addMcpServers({ conversationId: id, servers: [], replace: true })).toEqual([])
            yield* ask(sessions, id, "hello")
            expect(offeredIn(yield* sessions.transcript({ conversationId: id }))).toEqual(["echo"])
          }),
        )
        for (const { pid } of place.notes().filter(({ event }) => event === "started")) {
          expect(() => process.kill(Number(pid), 0)).toThrow()
        }
      }),
    ),
  )

  it.live("hide one of the node that has the same name", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* openWith(sessions)
          yield* sessions.addMcpServers({ conversationId, servers: [place.scripted("one", { MCP_NAME: "mine" })] })
          yield* serverWhen(sessions, "one", ({ server }) => server === "mine 1.0.0", conversationId)
          yield* ask(sessions, conversationId, "hello")
          const offered = offeredIn(yield* sessions.transcript({ conversationId }))
          expect(new Set(offered).size).toBe(offered.length)
          expect(offered).toHaveLength(13)
        }),
      ),
    ),
  )

  it.live("are refused where they are none, and are nobody else's", () =>
    withPlace((place) =>
      withMcpNode(place, {}, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* openWith(sessions)
          const bad = { name: "bad", transport: "http" as const, url: "file:///etc/passwd" }
          const refused = yield* Effect.flip(sessions.addMcpServers({ conversationId, servers: [bad] }))
          expect(refused.message).toBe(
            'servers[0].url: expected an absolute http or https URL, got "file:///etc/passwd"',
          )
          const foreign = yield* Effect.flip(
            sessions.addMcpServers({ conversationId, servers: [], principal: "other" }),
          )
          expect(foreign._tag).toBe("NotFound")
          expect((yield* Effect.flip(sessions.restartMcpServer({ conversationId, name: "x" })))._tag).toBe("NotFound")
        }),
      ),
    ),
  )
})
