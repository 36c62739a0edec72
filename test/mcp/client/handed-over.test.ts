/**
 * Servers that were handed over to a conversation, seen from where else it goes: a process that is attached to the node, a fork, a subagent.
 */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { ConversationId } from "../../../src/domain/ids.ts"
import { attach } from "../../../src/protocols/attach/attach.ts"
import { attachedSessions } from "../../../src/protocols/attach/derive.ts"
import type { Peer } from "../../../src/protocols/attach/handshake.ts"
import { serveAttach } from "../../../src/protocols/attach/serve.ts"
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
  callOf("^delegate", "delegate_subagent", { tasks: [{ role: "scout", task: "read it" }] }),
  { match: "^Subagent ", steps: [{ text: "done" }] },
  { match: "", steps: [{ text: "hi" }] },
]

const started = (notes: ReadonlyArray<Readonly<Record<string, unknown>>>) =>
  notes.filter(({ event }) => event === "started").length

describe("servers of a conversation", () => {
  it.scopedLive("are handed over, listed and restarted by an attached process, with the same refusals", () =>
    withPlace((place) =>
      withMcpNode(place, { rules }, (sessions) =>
        Effect.scoped(
          Effect.gen(function* () {
            const path = join(place.directory, "private", "socket")
            const peer = (instance: string): Peer => {
              return { program: "super-pi", version: "1.0.0", pid: process.pid, instance }
            }
            yield* serveAttach({ path, sessions, self: peer("one") })
            const remote = attachedSessions(yield* attach({ socket: path, self: peer("two") }))

            const conversationId = yield* openWith(remote)
            const server = place.scripted("one")
            const views = yield* remote.addMcpServers({ conversationId, servers: [server] })
            expect(views).toMatchObject([{ name: "one", conversation_id: conversationId, transport: "stdio" }])
            yield* serverWhen(remote, "one", isReady, conversationId)
            yield* ask(remote, conversationId, "read")
            expect(textOf(resultsIn(yield* remote.transcript({ conversationId }))[0])).toBe("read: x")
            expect(yield* remote.restartMcpServer({ conversationId, name: "one" })).toMatchObject({
              state: "ready",
              restarts: 1,
            })
            expect(started(place.notes())).toBe(2)
            const bad = { name: "bad", transport: "http" as const, url: "file:///x" }
            const refused = yield* Effect.flip(remote.addMcpServers({ conversationId, servers: [bad] }))
            expect(refused).toMatchObject({ _tag: "InvalidRequest", path: "servers[0].url" })
            const unknown = yield* Effect.flip(remote.restartMcpServer({ conversationId, name: "two" }))
            expect(unknown._tag).toBe("NotFound")
            // What it handed over is what everybody else finds there.
            expect(yield* sessions.mcpServers({ conversationId })).toMatchObject([{ name: "one", state: "ready" }])
            expect(yield* remote.addMcpServers({ conversationId, servers: [], replace: true })).toEqual([])
            expect(yield* sessions.mcpServers({ conversationId })).toEqual([])
          }),
        ),
      ),
    ),
  )

  it.live("are there in a fork as processes of its own, and what is added there stays there", () =>
    withPlace((place) =>
      withMcpNode(place, { rules }, (sessions) =>
        Effect.gen(function* () {
          const parent = yield* openWith(sessions)
          yield* sessions.addMcpServers({ conversationId: parent, servers: [place.scripted("one")] })
          yield* ask(sessions, parent, "read")
          const from = { conversationId: parent, entryId: null, agent: {}, title: null, requestId: null }
          const { conversation_id: fork } = yield* sessions.fork(from)
          yield* ask(sessions, fork, "read again")
          const results = resultsIn(yield* sessions.transcript({ conversationId: fork }))
          expect(results.map(textOf)).toEqual(["read: x", "read: x"])
          expect(yield* serverWhen(sessions, "one", isReady, fork)).toMatchObject({ conversation_id: fork })
          expect(started(place.notes())).toBe(2)
          yield* sessions.addMcpServers({ conversationId: fork, servers: [place.scripted("two")] })
          yield* serverWhen(sessions, "two", isReady, fork)
          const names = (conversationId: ConversationId) =>
            Effect.map(sessions.mcpServers({ conversationId }), (views) => views.map(({ name }) => name))
          expect(yield* names(fork)).toEqual(["one", "two"])
          expect(yield* names(parent)).toEqual(["one"])
        }),
      ),
    ),
  )

  it.live("are those of its subagents, which start none of their own", () =>
    withPlace((place) =>
      withMcpNode(place, { rules }, (sessions) =>
        Effect.gen(function* () {
          const parent = yield* openWith(sessions, { plugins: ["subagent"] })
          yield* sessions.addMcpServers({ conversationId: parent, servers: [place.scripted("one")] })
          const { status } = yield* ask(sessions, parent, "delegate")
          expect(status).toBe("done")
          const child = ConversationId.make(parent + 1)
          const entries = yield* sessions.transcript({ conversationId: child })
          expect(resultsIn(entries).map(textOf)).toEqual(["read: x"])
          expect(offeredIn(entries)).toContain("mcp__one__read")
          expect(place.notes().filter(({ event }) => event === "call")).toHaveLength(1)
          expect(started(place.notes())).toBe(1)
          // Another conversation has neither.
          const other = yield* openWith(sessions)
          yield* ask(sessions, other, "hello")
          expect(offeredIn(yield* sessions.transcript({ conversationId: other }))).not.toContain("mcp__one__read")
        }),
      ),
    ),
  )
})
