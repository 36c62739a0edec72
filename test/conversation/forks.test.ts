/**
 * Forks, writes, resets and withdrawals as their callers see them: real actors, a real database, scripted models.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Fiber, Layer, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { deriveContext } from "../../src/domain/context.ts"
import type { Entry } from "../../src/domain/entry.ts"
import { type ConversationId, type EntryId, SubmissionId } from "../../src/domain/ids.ts"
import type { Message } from "../../src/domain/message.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { attach } from "../../src/protocols/attach/attach.ts"
import { attachedSessions } from "../../src/protocols/attach/derive.ts"
import type { Peer } from "../../src/protocols/attach/handshake.ts"
import { serveAttach } from "../../src/protocols/attach/serve.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"
import { readsAt } from "../support/engine.ts"
import { atRest, collect, echo, type NodeOptions, nodeAt, open, prompt, until, withNode } from "./harness.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-forks-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
let databases = 0
const database = (): string => join(directory, `${++databases}.db`)

/** One life of a node on the database at `path`. */
const life = <A, E>(path: string, options: NodeOptions, use: (sessions: SessionsService) => Effect.Effect<A, E>) =>
  Effect.flatMap(Sessions, use).pipe(Effect.provide(Layer.fresh(nodeAt(path, options))))

const talk: NodeOptions = { rules: [{ match: "", steps: [{ text: "said" }] }] }
const run = <A, E>(options: NodeOptions, use: (sessions: SessionsService, path: string) => Effect.Effect<A, E>) =>
  Effect.runPromise(withNode(options, use))

const said = (value: string): Message => ({ role: "user", content: [text(value)] })
const entries = (sessions: SessionsService, conversationId: ConversationId) => sessions.transcript({ conversationId })
/** The texts that the model would see. */
const seen = (rows: ReadonlyArray<Entry>) =>
  deriveContext(rows).flatMap((m) => (m.role === "user" || m.role === "assistant" ? [textOf(m.content)] : []))
const fork = (sessions: SessionsService, conversationId: ConversationId, entryId: EntryId | null = null) =>
  Effect.map(
    sessions.fork({ conversationId, entryId, agent: {}, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

/** A tool that says when it runs and waits to be let go. */
const gate = () => {
  const running = Effect.runSync(Deferred.make<void>())
  const release = Effect.runSync(Deferred.make<void>())
  const tool: Tool = defineTool({
    name: "gate",
    description: "Waits.",
    parameters: Schema.Struct({}),
    effects: ["read"],
    replay: "safe",
    execute: () =>
      Effect.zipRight(
        Deferred.succeed(running, undefined),
        Effect.as(Deferred.await(release), { output: [text("released")] }),
      ),
  })
  return { tool, running: Deferred.await(running), release: Deferred.succeed(release, undefined) }
}
const gated = [{ match: "", steps: [{ text: "wait", tools: [{ name: "gate", args: {} }] }, { text: "done" }] }]

describe("a fork", () => {
  it("sees its parent's entries up to the fork point and goes its own way; the parent does not change", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* prompt(sessions, root, "one")
        const at = (yield* entries(sessions, root)).at(-1)?.id as EntryId
        yield* prompt(sessions, root, "two")
        const before = yield* entries(sessions, root)
        const child = yield* fork(sessions, root, at)
        yield* prompt(sessions, child, "other")
        expect(seen(yield* entries(sessions, child))).toEqual(["one", "said", "other", "said"])
        expect(yield* entries(sessions, root)).toEqual(before)
        const listed = yield* sessions.list({})
        expect(listed.find((row) => row.conversation_id === child)?.forked_from).toBe(root)
      }),
    ))

  it("may be taken of a fork, at an entry of its own or of an ancestor", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* prompt(sessions, root, "one")
        const first = (yield* entries(sessions, root))[0]?.id as EntryId
        const child = yield* fork(sessions, root)
        yield* prompt(sessions, child, "two")
        const grandchild = yield* fork(sessions, child)
        yield* prompt(sessions, grandchild, "three")
        expect(seen(yield* entries(sessions, grandchild))).toEqual(["one", "said", "two", "said", "three", "said"])
        const early = yield* fork(sessions, grandchild, first)
        expect(seen(yield* entries(sessions, early))).toEqual(["one"])
      }),
    ))

  it("has its parent's choices as of the entry, what it is given besides, and a provider session of its own", () =>
    run({ ...talk, tools: [echo] }, (sessions, path) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* sessions.configure({ conversationId: root, agent: { instructions: "early", effort: "low" } })
        yield* prompt(sessions, root, "one")
        const at = (yield* entries(sessions, root)).at(-1)?.id as EntryId
        yield* sessions.configure({ conversationId: root, agent: { instructions: "late" } })
        yield* prompt(sessions, root, "two")
        const child = (yield* sessions.fork({
          conversationId: root,
          entryId: at,
          agent: { mode: "plan" },
          title: "mine",
          requestId: null,
        })).conversation_id
        const documents = yield* Effect.scoped(
          Effect.flatMap(readsAt(path), (store) => Effect.zip(store.documents(root), store.documents(child))),
        )
        const of = (side: 0 | 1, kind: string) => documents[side].find((one) => one.kind === kind)?.value
        expect(of(1, "pi.agent")).toEqual({ instructions: "early", effort: "low", mode: "plan" })
        expect(of(1, "pi.provider")).not.toEqual(of(0, "pi.provider"))
        expect(of(1, "pi.usage")).toBeUndefined()
        expect((yield* sessions.state({ conversationId: child })).title).toBe("mine")
      }),
    ))

  it("may be taken in the middle of a batch of calls: the calls have error results there, and the parent goes on", () => {
    const { release, running, tool } = gate()
    return run({ rules: gated, tools: [tool] }, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const waiting = yield* Effect.fork(prompt(sessions, root, "go"))
        yield* running
        const child = yield* fork(sessions, root)
        const context = deriveContext(yield* entries(sessions, child))
        expect(context.at(-1)).toMatchObject({ role: "tool", isError: true })
        yield* release
        expect((yield* Fiber.join(waiting)).text).toBe("done")
        expect((yield* sessions.state({ conversationId: child })).state).toBe("idle")
      }),
    )
  })

  it("is one and the same for one request id, also after a restart", () => {
    const path = database()
    const make = (sessions: SessionsService, conversationId: ConversationId) =>
      sessions.fork({ conversationId, entryId: null, agent: {}, title: null, requestId: "branch" })
    return Effect.runPromise(
      Effect.gen(function* () {
        const [root, first] = yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            yield* prompt(sessions, id, "one")
            const [a, b] = yield* Effect.all([make(sessions, id), make(sessions, id)], { concurrency: 2 })
            expect(a.conversation_id).toBe(b.conversation_id)
            return [id, a.conversation_id] as const
          }),
        )
        yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            expect((yield* make(sessions, root)).conversation_id).toBe(first)
            expect(yield* sessions.list({})).toHaveLength(2)
          }),
        )
      }),
    )
  })

  it("is refused at an entry that is not visible, without entries, and for a stranger", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const none = yield* Effect.flip(fork(sessions, root))
        expect(none.message).toBe(
          `entryId: expected an entry that conversation ${root} sees, got none: it has no entries yet`,
        )
        yield* prompt(sessions, root, "one")
        const at = (yield* entries(sessions, root)).at(-1)?.id as EntryId
        const child = yield* fork(sessions, root, (yield* entries(sessions, root))[0]?.id as EntryId)
        const beyond = yield* Effect.flip(fork(sessions, child, at))
        expect(beyond.message).toBe(`entryId: expected an entry that conversation ${child} sees, got ${at}`)
        const stranger = yield* Effect.flip(
          sessions.fork({
            conversationId: root,
            entryId: null,
            agent: {},
            title: null,
            requestId: null,
            principal: "eve",
          }),
        )
        expect(stranger._tag).toBe("NotFound")
      }),
    ))

  it("keeps its parent from being removed", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* prompt(sessions, root, "one")
        const child = yield* fork(sessions, root)
        expect(yield* Effect.flip(sessions.remove({ conversationId: root }))).toMatchObject({
          _tag: "Refused",
          rule: "forks",
        })
        yield* sessions.remove({ conversationId: child })
        expect(yield* sessions.remove({ conversationId: root })).toEqual({ removed: true })
      }),
    ))
})

describe("a write", () => {
  it("of a note says which entry it became; the same request id gives the same one, also after a restart", () => {
    const path = database()
    const note = (sessions: SessionsService, conversationId: ConversationId) =>
      sessions.write({ conversationId, kind: "app.note", data: { n: 1 }, requestId: "note-1" })
    return Effect.runPromise(
      Effect.gen(function* () {
        const [root, receipt] = yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            return [id, yield* note(sessions, id)] as const
          }),
        )
        expect(receipt).toMatchObject({ status: "done", reason: null })
        yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            expect(yield* note(sessions, root)).toEqual(receipt)
            expect(yield* entries(sessions, root)).toMatchObject([
              { id: receipt.placed_entry_id, kind: "app.note", data: { n: 1 } },
            ])
            const twice = yield* Effect.flip(
              sessions.submit({ conversationId: root, content: [text("x")], requestId: "note-1" }),
            )
            expect(twice.message).toMatch(/^requestId: expected one that is new, .* got "note-1", which made a write$/)
          }),
        )
      }),
    )
  })

  it("edits what the model sees; the transcript keeps what was said", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* prompt(sessions, root, "my password is xyz")
        const first = (yield* entries(sessions, root)).find((one) => one.kind === "pi.user")?.id as EntryId
        const edits = [{ type: "replace" as const, entry: first, model: [said("my password is [removed]")] }]
        yield* sessions.write({ conversationId: root, edits, requestId: null })
        const rows = yield* entries(sessions, root)
        expect(rows.at(-1)?.kind).toBe("pi.edit")
        expect(seen(rows)).toEqual(["my password is [removed]", "said"])
        expect(rows.find((one) => one.id === first)?.model).toEqual([said("my password is xyz")])
      }),
    ))

  it("is refused where it names what is not visible, is not a model's message, or takes a kind of the engine's", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const other = yield* open(sessions)
        yield* prompt(sessions, other, "elsewhere")
        const foreign = (yield* entries(sessions, other))[0]?.id as EntryId
        const refused = (write: Partial<Parameters<SessionsService["write"]>[0]>) =>
          Effect.map(
            Effect.flip(sessions.write({ conversationId: root, requestId: null, ...write })),
            (failure) => failure.message,
          )
        expect(yield* refused({})).toBe('kind: expected the kind of the entry, such as "app.note", got nothing')
        expect(yield* refused({ kind: "pi.user" })).toBe(
          'kind: expected a kind of your own, such as "app.note", got "pi.user"',
        )
        expect(yield* refused({ edits: [{ type: "omit", entry: foreign }] })).toBe(
          `edits.0.entry: expected an entry that conversation ${root} sees, got ${foreign}`,
        )
        expect(yield* refused({ kind: "app.x", head: foreign })).toBe(
          `head: expected an entry that conversation ${root} sees, got ${foreign}`,
        )
        expect(yield* refused({ kind: "app.x", model: [said(" ")] })).toBe(
          "model.0: expected a message that every model accepts, got one to repair (empty text part dropped)",
        )
        expect(
          yield* refused({ edits: [{ type: "replace", entry: foreign, model: [said("fine"), said("")] }] }),
        ).toMatch(/^edits\.0\.model\.1: expected a message/)
        expect(yield* entries(sessions, root)).toEqual([])
        const shown = yield* Effect.flip(
          sessions.submit({
            conversationId: root,
            content: [text("x")],
            entry: { kind: "pi.system", data: null },
            requestId: null,
          }),
        )
        expect(shown.message).toMatch(/^entry\.kind: expected a kind of your own/)
      }),
    ))

  it("of an input shows it as a kind of the application's, and it is answered like every other", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const { submission_id } = yield* sessions.submit({
          conversationId: root,
          content: [text("ann: look")],
          entry: { kind: "chat.mention", data: { author: "ann" } },
          requestId: null,
        })
        const settled = yield* sessions.awaitSubmission({ conversationId: root, submissionId: submission_id })
        expect(settled.text).toBe("said")
        const rows = yield* entries(sessions, root)
        expect(rows.find((one) => one.id === settled.placed_entry_id)).toMatchObject({
          kind: "chat.mention",
          data: { author: "ann" },
          model: [said("ann: look")],
        })
      }),
    ))

  it("survives a restart in the queue, and is placed with the next input", () => {
    const path = database()
    return Effect.runPromise(
      Effect.gen(function* () {
        const held = gate()
        const options = { rules: [...gated], tools: [held.tool] }
        const root = yield* life(path, options, (sessions) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            yield* sessions.submit({ conversationId: id, content: [text("go")], requestId: "go" })
            yield* held.running
            const queued = yield* sessions.write({
              conversationId: id,
              kind: "app.seen",
              model: [said("w")],
              requestId: "w",
            })
            expect(queued).toMatchObject({ status: "queued", placed_entry_id: null })
            return id
          }),
        )
        const again = gate()
        yield* again.release
        yield* life(path, { rules: gated, tools: [again.tool] }, (sessions) =>
          Effect.gen(function* () {
            const { submission_id } = yield* sessions.submission({
              conversationId: root,
              submissionId: null,
              requestId: "w",
            })
            const settled = yield* sessions.awaitSubmission({ conversationId: root, submissionId: submission_id })
            expect(settled).toMatchObject({ status: "done", entry_id: null, text: null })
            const rows = yield* entries(sessions, root)
            expect(rows.find((one) => one.id === settled.placed_entry_id)?.kind).toBe("app.seen")
          }),
        )
      }),
    )
  })
})

describe("a reset", () => {
  it("begins a new context that survives a restart, whose first request has the whole prompt again", () => {
    const path = database()
    return Effect.runPromise(
      Effect.gen(function* () {
        const root = yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            yield* prompt(sessions, id, "old story")
            yield* sessions.reset({ conversationId: id, handoff: "we fixed it", requestId: "r" })
            return id
          }),
        )
        yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            yield* prompt(sessions, root, "next")
            const rows = yield* entries(sessions, root)
            expect(seen(rows)).toEqual(["we fixed it", "next", "said"])
            expect(deriveContext(rows)[0]).toMatchObject({ role: "system" })
            const again = yield* sessions.reset({ conversationId: root, handoff: "we fixed it", requestId: "r" })
            expect(again.status).toBe("done")
            expect(yield* entries(sessions, root)).toHaveLength(rows.length)
          }),
        )
      }),
    )
  })

  it("is refused with a handoff that says nothing", () =>
    run(talk, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const failure = yield* Effect.flip(sessions.reset({ conversationId: root, handoff: " ", requestId: null }))
        expect(failure.message).toBe("handoff: expected a note, or null for an empty context, got an empty text")
      }),
    ))

  it("in the middle of a run ends it, tells whoever waits, and lets what is queued go on", () => {
    const { release, running, tool } = gate()
    return run({ rules: [{ match: "^go$", steps: gated[0]?.steps ?? [] }, ...talk.rules], tools: [tool] }, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const waiting = yield* Effect.fork(prompt(sessions, root, "go"))
        yield* running
        const next = yield* Effect.fork(prompt(sessions, root, "next"))
        yield* until(sessions, root, (event) => event.type === "snapshot" && event.session.queued.length === 1)
        const { submission_id } = yield* sessions.reset({ conversationId: root, handoff: "fresh", requestId: null })
        const resetting = yield* Effect.fork(
          sessions.awaitSubmission({ conversationId: root, submissionId: submission_id }),
        )
        yield* release
        expect(yield* Fiber.join(waiting)).toMatchObject({ status: "unanswered", reason: "reset" })
        expect(yield* Fiber.join(resetting)).toMatchObject({ status: "done" })
        expect(yield* Fiber.join(next)).toMatchObject({ status: "done", text: "said" })
        expect(seen(yield* entries(sessions, root))).toEqual(["fresh", "next", "said"])
      }),
    )
  })
})

describe("what is queued", () => {
  it("is listed and looked up, and withdrawn once; what is placed or ended is refused", () => {
    const { release, running, tool } = gate()
    return run({ rules: gated, tools: [tool] }, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        const first = yield* sessions.submit({ conversationId: root, content: [text("go")], requestId: "a" })
        yield* running
        const second = yield* sessions.submit({ conversationId: root, content: [text("later")], requestId: "b" })
        expect(yield* sessions.submissions({ conversationId: root })).toMatchObject([
          { submission_id: first.submission_id, status: "placed", kind: "input", request_id: "a" },
          { submission_id: second.submission_id, status: "queued", content: { content: [text("later")] } },
        ])
        const waiting = yield* Effect.fork(
          sessions.awaitSubmission({ conversationId: root, submissionId: second.submission_id }),
        )
        const withdraw = (submissionId: SubmissionId) => sessions.withdraw({ conversationId: root, submissionId })
        expect(yield* withdraw(second.submission_id)).toMatchObject({ status: "unanswered", reason: "withdrawn" })
        expect(yield* withdraw(second.submission_id)).toMatchObject({ status: "unanswered", reason: "withdrawn" })
        expect(yield* Fiber.join(waiting)).toMatchObject({ status: "unanswered", reason: "withdrawn" })
        expect(yield* Effect.flip(withdraw(first.submission_id))).toMatchObject({
          _tag: "Refused",
          rule: "submission_status",
          detail: `submission ${first.submission_id} is placed; only what is queued can be withdrawn`,
        })
        expect(yield* Effect.flip(withdraw(SubmissionId.make(9_999)))).toMatchObject({ _tag: "NotFound" })
        const rest = yield* collect(sessions, root, atRest)
        yield* release
        yield* Fiber.join(rest)
        expect(yield* Effect.flip(withdraw(first.submission_id))).toMatchObject({ _tag: "Refused" })
        expect(yield* sessions.submissions({ conversationId: root })).toEqual([])
        expect(
          yield* sessions.submission({ conversationId: root, submissionId: first.submission_id, requestId: null }),
        ).toMatchObject({ status: "done" })
        const both = yield* Effect.flip(
          sessions.submission({ conversationId: root, submissionId: first.submission_id, requestId: "a" }),
        )
        expect(both.message).toBe("submissionId: expected either it or requestId, got both")
      }),
    )
  })

  it("does not keep an idle conversation from being removed where only writes are left", () => {
    const { running, tool } = gate()
    return run({ rules: gated, tools: [tool] }, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        yield* sessions.submit({ conversationId: root, content: [text("go")], requestId: null })
        yield* running
        yield* sessions.write({ conversationId: root, kind: "app.seen", model: [said("w")], requestId: null })
        yield* sessions.cancel({ conversationId: root })
        expect(yield* sessions.submissions({ conversationId: root })).toMatchObject([{ status: "queued" }])
        expect(yield* sessions.remove({ conversationId: root })).toEqual({ removed: true })
      }),
    )
  })

  it("is waited for over a restart of the node, by its id and by its request", () => {
    const path = database()
    const held = gate()
    return Effect.runPromise(
      Effect.gen(function* () {
        const [root, id] = yield* life(path, { rules: gated, tools: [held.tool] }, (sessions) =>
          Effect.gen(function* () {
            const root = yield* open(sessions)
            const { submission_id } = yield* sessions.submit({
              conversationId: root,
              content: [text("go")],
              requestId: "go",
            })
            yield* held.running
            return [root, submission_id] as const
          }),
        )
        const again = gate()
        yield* again.release
        yield* life(path, { rules: gated, tools: [again.tool] }, (sessions) =>
          Effect.gen(function* () {
            const found = yield* sessions.submission({ conversationId: root, submissionId: null, requestId: "go" })
            expect(found.submission_id).toBe(id)
            expect(yield* sessions.awaitSubmission({ conversationId: root, submissionId: id })).toMatchObject({
              status: "done",
              text: "done",
            })
          }),
        )
        yield* life(path, talk, (sessions) =>
          Effect.gen(function* () {
            // Whoever waits only now has the answer, too.
            expect(yield* sessions.awaitSubmission({ conversationId: root, submissionId: id })).toMatchObject({
              status: "done",
              text: "done",
            })
          }),
        )
      }),
    )
  })
})

describe("an attached process", () => {
  const self: Peer = { program: "super-pi", version: "1", pid: process.pid, instance: "forks" }

  it("that lost its connection while it waited finds what it submitted by its request, and has the answer", () => {
    const { release, running, tool } = gate()
    const socket = join(directory, "owner", "socket")
    const remote = Effect.map(attach({ socket, self }), attachedSessions)
    return run({ rules: gated, tools: [tool] }, (sessions) =>
      Effect.gen(function* () {
        yield* serveAttach({ path: socket, sessions, self })
        const root = yield* open(sessions)
        yield* Effect.scoped(
          Effect.gen(function* () {
            const api = yield* remote
            const { submission_id } = yield* api.submit({
              conversationId: root,
              content: [text("go")],
              requestId: "go",
            })
            const target = { conversationId: root, submissionId: submission_id }
            yield* Effect.forkScoped(api.awaitSubmission(target))
            yield* running
          }),
        )
        yield* Effect.scoped(
          Effect.gen(function* () {
            const api = yield* remote
            const found = yield* api.submission({ conversationId: root, submissionId: null, requestId: "go" })
            expect(found.status).toBe("placed")
            const target = { conversationId: root, submissionId: found.submission_id }
            const waiting = yield* Effect.fork(api.awaitSubmission(target))
            yield* release
            expect(yield* Fiber.join(waiting)).toMatchObject({ status: "done", text: "done" })
            const fork = yield* api.fork({
              conversationId: root,
              entryId: null,
              agent: {},
              title: null,
              requestId: null,
            })
            expect(seen(yield* api.transcript({ conversationId: fork.conversation_id })).at(-1)).toBe("done")
          }),
        )
      }).pipe(Effect.scoped),
    )
  })
})

describe("a tool that hands off", () => {
  it("ends the run with a new context from its note", () => {
    const handoff: Tool = defineTool({
      name: "handoff",
      description: "Hands off.",
      parameters: Schema.Struct({ note: Schema.String }),
      effects: ["read"],
      execute: ({ note }) => Effect.succeed({ output: [text("handed off")], control: { handoff: note } }),
    })
    const rules = [
      { match: "^go$", steps: [{ text: "so", tools: [{ name: "handoff", args: { note: "go on there" } }] }] },
    ]
    return run({ rules: [...rules, ...talk.rules], tools: [handoff] }, (sessions) =>
      Effect.gen(function* () {
        const root = yield* open(sessions)
        expect(yield* prompt(sessions, root, "go")).toMatchObject({ status: "done", text: "so" })
        expect(seen(yield* entries(sessions, root))).toEqual(["go on there"])
      }),
    )
  })
})
