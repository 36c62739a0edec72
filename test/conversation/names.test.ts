/**
 * Conversations by the names of their clients: created once and with the name, found after a restart, and nobody else's business.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import { type NodeOptions, nodeAt, withNode } from "./harness.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-names-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const talk: NodeOptions = { rules: [{ match: "", steps: [{ text: "said" }] }] }
const life = <A, E>(path: string, use: (sessions: SessionsService) => Effect.Effect<A, E>) =>
  Effect.runPromise(Effect.flatMap(Sessions, use).pipe(Effect.provide(Layer.fresh(nodeAt(path, talk)))))
const run = <A, E>(use: (sessions: SessionsService) => Effect.Effect<A, E>) => Effect.runPromise(withNode(talk, use))

const openAs = (sessions: SessionsService, name: string, principal = "local", title: string | null = null) =>
  sessions.openNamed({ namespace: "openai", name, principal, agent: {}, title })

describe("a conversation that a client names", () => {
  it("is created by the first call and found by every later one, also of the next process", async () => {
    const path = join(directory, "names.db")
    const first = await life(path, (sessions) =>
      Effect.gen(function* () {
        const made = yield* openAs(sessions, "chat", "local", "first")
        const again = yield* openAs(sessions, "chat", "local", "second")
        expect([made.created, again.created]).toEqual([true, false])
        expect(again.session.conversation_id).toBe(made.session.conversation_id)
        return made.session.conversation_id
      }),
    )
    await life(path, (sessions) =>
      Effect.gen(function* () {
        const { created, session } = yield* openAs(sessions, "chat")
        expect([created, session.conversation_id, session.title]).toEqual([false, first, "first"])
        const found = yield* sessions.findNamed({ namespace: "openai", name: "chat" })
        expect([found.conversation_id, found.title]).toEqual([first, "first"])
      }),
    )
  })

  it("is one conversation, however many ask for it at once", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const all = yield* Effect.all(
          Array.from({ length: 20 }, () => openAs(sessions, "race")),
          { concurrency: "unbounded" },
        )
        expect(new Set(all.map(({ session }) => session.conversation_id)).size).toBe(1)
        expect(all.filter(({ created }) => created).length).toBe(1)
        expect((yield* sessions.list({})).length).toBe(1)
      }),
    ))

  it("is another one for another principal and another protocol", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const ann = yield* openAs(sessions, "chat", "ann")
        const bob = yield* openAs(sessions, "chat", "bob")
        const editor = yield* sessions.openNamed({
          namespace: "acp",
          name: "chat",
          principal: "ann",
          agent: {},
          title: null,
        })
        const ids = [ann, bob, editor].map(({ session }) => session.conversation_id)
        expect(new Set(ids).size).toBe(3)
        const lists = yield* Effect.forEach(["ann", "bob", "eve"], (principal) =>
          sessions.listNamed({ namespace: "openai", principal }),
        )
        expect(lists.map((rows) => rows.map((row) => row.conversation_id))).toEqual([[ids[0]], [ids[1]], []])
        const missing = yield* Effect.flip(sessions.findNamed({ namespace: "openai", name: "chat", principal: "eve" }))
        expect(missing._tag).toBe("NotFound")
      }),
    ))

  it("can be given another name, renamed away and forgotten; only by its principal", () =>
    run((sessions) =>
      Effect.gen(function* () {
        const { session } = yield* openAs(sessions, "one", "ann")
        const name = { namespace: "openai", name: "two", principal: "ann" } as const
        yield* sessions.setName({ ...name, conversationId: session.conversation_id })
        expect((yield* sessions.findNamed(name)).conversation_id).toBe(session.conversation_id)
        const other = yield* openAs(sessions, "three", "ann")
        yield* sessions.setName({ ...name, conversationId: other.session.conversation_id })
        expect((yield* sessions.findNamed(name)).conversation_id).toBe(other.session.conversation_id)
        const foreign = { ...name, principal: "bob", conversationId: session.conversation_id }
        expect((yield* Effect.flip(sessions.setName(foreign)))._tag).toBe("NotFound")
        expect(
          (yield* Effect.flip(sessions.setName({ ...name, conversationId: ConversationId.make(9_999) })))._tag,
        ).toBe("NotFound")
        yield* sessions.setName({ ...name, conversationId: null })
        expect((yield* Effect.flip(sessions.findNamed(name)))._tag).toBe("NotFound")
        yield* sessions.remove({ conversationId: session.conversation_id, principal: "ann" })
        const again = yield* openAs(sessions, "one", "ann")
        expect([again.created, again.session.conversation_id === session.conversation_id]).toEqual([true, false])
      }),
    ))

  it("says what is wrong with a name or an agent, and then there is neither a name nor a conversation", () =>
    run((sessions) =>
      Effect.gen(function* () {
        for (const name of ["", "x".repeat(257)]) {
          const failure = yield* Effect.flip(openAs(sessions, name))
          expect(failure.message).toMatch(/^name: expected 1 to 256 characters, got /)
        }
        const agent = { cwd: "not/absolute" }
        const failure = yield* Effect.flip(sessions.openNamed({ namespace: "agui", name: "x", agent, title: null }))
        expect(failure.message).toContain("agent.cwd")
        expect(yield* sessions.list({})).toEqual([])
        expect(yield* sessions.listNamed({ namespace: "agui" })).toEqual([])
      }),
    ))
})
