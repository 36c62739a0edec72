/**
 * Conversations as their callers see them: real actors, a real database, scripted models.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Chunk, Deferred, Effect, Fiber, Layer, Schedule, Schema, Stream } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { DocumentKind } from "../../src/domain/document.ts"
import type { Event } from "../../src/domain/event.ts"
import { text } from "../../src/domain/message.ts"
import type { TreeNode } from "../../src/domain/tree.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"
import { engineAt } from "../support/engine.ts"
import { atRest, collect, echo, type NodeOptions, nodeAt, open, prompt, until, withNode } from "./harness.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-actor-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
let databases = 0
const database = (): string => join(directory, `${++databases}.db`)

/** One life of a node on the database at `path`. */
const life = <A, E>(path: string, options: NodeOptions, use: (sessions: SessionsService) => Effect.Effect<A, E>) =>
  Effect.flatMap(Sessions, use).pipe(Effect.provide(Layer.fresh(nodeAt(path, options))))

const talk = [{ match: "", steps: [{ text: "one two three", chunks: 3 }] }]

/** A tool that says when it runs and waits for `release`. */
const gate = () => {
  const running = Deferred.unsafeMake<void>(fiberId)
  const release = Deferred.unsafeMake<void>(fiberId)
  let interrupted = 0
  let runs = 0
  const tool: Tool = defineTool({
    name: "gate",
    description: "Waits.",
    parameters: Schema.Struct({}),
    effects: ["exec"],
    execute: (_args, context) =>
      Effect.gen(function* () {
        runs++
        yield* context.emit("waiting\n")
        yield* Deferred.succeed(running, undefined)
        yield* Deferred.await(release)
        return { output: [text("released")] }
      }).pipe(Effect.onInterrupt(() => Effect.sync(() => void interrupted++))),
  })
  return {
    tool,
    running: Deferred.await(running),
    release: Deferred.succeed(release, undefined),
    runs: () => runs,
    interrupted: () => interrupted,
  }
}
const fiberId = Effect.runSync(Effect.fiberId)

const gated = [{ match: "", steps: [{ text: "let me wait", tools: [{ name: "gate", args: {} }] }, { text: "done" }] }]

describe("a watcher", () => {
  it("sees a snapshot and then every event in order, the same as every other watcher", () =>
    Effect.runPromise(
      withNode({ rules: talk }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const first = yield* collect(sessions, conversationId, atRest)
          const second = yield* collect(sessions, conversationId, atRest)
          yield* prompt(sessions, conversationId, "hi")
          const [a, b] = [yield* Fiber.join(first), yield* Fiber.join(second)]
          for (const events of [a, b]) {
            expect(events[0]?.type).toBe("snapshot")
            const numbers = events.map((event) => event.seq_no)
            const start = numbers[0] ?? 0
            expect(numbers).toEqual(numbers.map((_, i) => start + i))
          }
          const deltas = b.flatMap((event) => (event.type === "text_delta" ? [event.text] : []))
          expect(deltas.join("")).toBe("one two three")
        }),
      ),
    ))

  it("that comes back with the number of its last event misses nothing and gets nothing twice", () =>
    Effect.runPromise(
      withNode({ rules: talk }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* prompt(sessions, conversationId, "hi")
          const { seq_no } = yield* sessions.state({ conversationId })
          yield* prompt(sessions, conversationId, "again")
          const last = (yield* sessions.state({ conversationId })).seq_no
          const missed = yield* sessions
            .watch({ conversationId, after: seq_no })
            .pipe(Stream.take(last - seq_no), Stream.runCollect)
          expect(Chunk.toReadonlyArray(missed).map((event) => event.seq_no)).toEqual(
            Array.from({ length: last - seq_no }, (_, i) => seq_no + 1 + i),
          )
        }),
      ),
    ))

  it("joins in the middle of an answer with what was streamed so far", () =>
    Effect.runPromise(
      withNode({ rules: [{ match: "", steps: [{ text: "thinking about it", hang: true }] }] }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* sessions.submit({ conversationId, content: [text("hi")], requestId: null })
          yield* until(sessions, conversationId, (event) => event.type === "text_delta" || hasPartial(event))
          const late = yield* until(sessions, conversationId, hasPartial)
          expect(late._tag).toBe("Some")
          yield* sessions.cancel({ conversationId })
          expect((yield* sessions.state({ conversationId })).state).toBe("idle")
        }),
      ),
    ))
})

const hasPartial = (event: Event): boolean => event.type === "snapshot" && event.session.partial !== null

describe("cancel", () => {
  it("interrupts a running call, keeps its output, and answers once the conversation is idle", () => {
    const { interrupted, running, tool } = gate()
    return Effect.runPromise(
      withNode({ rules: gated, tools: [tool] }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const receipt = yield* sessions.submit({ conversationId, content: [text("hi")], requestId: null })
          yield* running
          yield* until(sessions, conversationId, (event) => event.type === "tool_output" || hasOutput(event))
          expect(yield* sessions.cancel({ conversationId })).toEqual({ cancelled: true })
          expect(interrupted()).toBe(1)
          expect((yield* sessions.state({ conversationId })).state).toBe("idle")
          const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
          expect(settled).toMatchObject({ status: "unanswered", reason: "aborted" })
          const results = (yield* sessions.transcript({ conversationId })).filter((e) => e.kind === "pi.tool-result")
          expect(JSON.stringify(results[0]?.model)).toContain("waiting")
        }),
      ),
    )
  })
})

const hasOutput = (event: Event): boolean =>
  event.type === "snapshot" && event.session.tools.some((view) => view.output !== "")

describe("a call", () => {
  it("whose tool breaks becomes an error result with a reference, and the run goes on", () => {
    const broken: Tool = {
      ...echo,
      spec: { ...echo.spec, name: "broken" },
      execute: () => Effect.die(new Error("kaput")),
    }
    const rules = [{ match: "", steps: [{ tools: [{ name: "broken", args: { value: "x" } }] }, { text: "went on" }] }]
    return Effect.runPromise(
      withNode({ rules, tools: [broken] }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          expect(yield* prompt(sessions, conversationId, "hi")).toMatchObject({ status: "done", text: "went on" })
          const results = (yield* sessions.transcript({ conversationId })).filter((e) => e.kind === "pi.tool-result")
          expect(JSON.stringify(results[0]?.model)).toMatch(/broke: kaput \(reference [0-9a-f]{8}\)/)
        }),
      ),
    )
  })

  it("with wrong arguments or an unknown name is answered with what was expected", () => {
    const rules = [
      {
        match: "",
        steps: [
          {
            tools: [
              { name: "echo", args: { value: 7 } },
              { name: "nosuch", args: {} },
            ],
          },
          { text: "I see" },
        ],
      },
    ]
    return Effect.runPromise(
      withNode({ rules, tools: [echo] }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* prompt(sessions, conversationId, "hi")
          const results = (yield* sessions.transcript({ conversationId })).filter((e) => e.kind === "pi.tool-result")
          expect(JSON.stringify(results[1]?.model)).toMatch(/no tool .*nosuch.*the tools are echo/)
        }),
      ),
    )
  })
})

describe("a node that stops and starts again", () => {
  it("goes on with the run where it was, and a clean stop counts as no crash", () => {
    const path = database()
    const first = gate()
    return Effect.runPromise(
      Effect.gen(function* () {
        const submission = yield* life(path, { rules: gated, tools: [first.tool] }, (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* open(sessions)
            const receipt = yield* sessions.submit({ conversationId, content: [text("hi")], requestId: "r1" })
            yield* first.running
            return receipt
          }),
        )
        const second = gate()
        yield* life(path, { rules: gated, tools: [second.tool] }, (sessions) =>
          Effect.gen(function* () {
            const conversationId = submission.conversation_id
            const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: submission.submission_id })
            expect(settled).toMatchObject({ status: "done", text: "done" })
            const again = yield* sessions.submit({ conversationId, content: [text("hi")], requestId: "r1" })
            expect(again).toMatchObject({ submission_id: submission.submission_id, status: "done" })
          }),
        )
        expect(first.runs()).toBe(1)
        expect(second.runs()).toBe(0)
      }),
    )
  })

  it("stopped while it commits a call's intent, counts no crash either, and goes on in its next life", () => {
    const path = database()
    const held = gate()
    const committing = Deferred.unsafeMake<void>(fiberId)
    const goOn = Deferred.unsafeMake<void>(fiberId)
    const slow = (store: StoreService): StoreService => ({
      ...store,
      commit: (commit) =>
        commit.tasks?.some(({ kind, status }) => kind === "pi.tool" && status === "running") === true
          ? Effect.zipRight(
              Effect.zipRight(Deferred.succeed(committing, undefined), Deferred.await(goOn)),
              store.commit(commit),
            )
          : store.commit(commit),
    })
    return Effect.runPromise(
      Effect.gen(function* () {
        const first = yield* Effect.fork(
          life(path, { rules: gated, tools: [held.tool], wrapStore: slow }, (sessions) =>
            Effect.gen(function* () {
              const conversationId = yield* open(sessions)
              yield* sessions.submit({ conversationId, content: [text("hi")], requestId: "r1" })
              yield* Deferred.await(committing)
              return conversationId
            }),
          ),
        )
        yield* Deferred.await(committing)
        // The life is over: by now its node is stopping, and waits for the commit.
        yield* Effect.repeatN(Effect.yieldNow(), 1_000)
        yield* Deferred.succeed(goOn, undefined)
        const conversationId = yield* Fiber.join(first)
        const left = yield* Effect.flatMap(Store, (store) => store.openTasks(conversationId)).pipe(
          Effect.provide(Layer.fresh(engineAt(path))),
        )
        expect(left.map(({ crashes, node }) => ({ crashes, node }))).toEqual(
          left.map(() => ({ crashes: 0, node: null })),
        )
        expect(left.length).toBeGreaterThan(0)
        yield* life(path, { rules: gated, tools: [gate().tool] }, (sessions) =>
          Effect.gen(function* () {
            const receipt = yield* sessions.submit({ conversationId, content: [text("hi")], requestId: "r1" })
            const settled = yield* sessions.awaitSubmission({ conversationId, submissionId: receipt.submission_id })
            expect(settled).toMatchObject({ status: "done", text: "done" })
          }),
        )
      }),
    )
  })

  it("opens one conversation for one request id, however often it is asked", () => {
    const path = database()
    const ask = life(path, { rules: talk }, (sessions) =>
      sessions.open({ conversationId: null, agent: {}, title: "t", requestId: "same" }),
    )
    return Effect.runPromise(
      Effect.gen(function* () {
        const [a, b] = [yield* ask, yield* ask]
        expect(a.conversation_id).toBe(b.conversation_id)
      }),
    )
  })
})

describe("what a conversation says of itself", () => {
  const spender = defineTool({
    name: "spend",
    description: "Asks a model of its own.",
    parameters: Schema.Struct({}),
    effects: ["read"],
    replay: "safe",
    execute: () =>
      Effect.succeed({
        output: [text("asked")],
        usage: { model: "script/small", usage: { ...noUsage, input: 70, output: 7 } },
      }),
  })

  it("counts what tools spend, by tool and by the model that they name", () => {
    const path = database()
    const rules = [{ match: "", steps: [{ tools: [{ name: "spend", args: {} }] }, { text: "done" }] }]
    return Effect.runPromise(
      Effect.gen(function* () {
        const conversationId = yield* life(path, { rules, tools: [spender] }, (sessions) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            yield* prompt(sessions, id, "one")
            yield* prompt(sessions, id, "two")
            return id
          }),
        )
        const usage = yield* Effect.flatMap(Store, (store) => store.documents(conversationId)).pipe(
          Effect.map((documents) => documents.find(({ kind }) => kind === DocumentKind.usage)?.value),
          Effect.provide(Layer.fresh(engineAt(path))),
        )
        const spent = { ...noUsage, input: 140, output: 14 }
        expect(usage).toMatchObject({ models: { "script/small": spent }, tools: { spend: spent } })
      }),
    )
  })

  it("counts every entry that is visible, also after a reset and a restart", () => {
    const path = database()
    return Effect.runPromise(
      Effect.gen(function* () {
        const before = yield* life(path, { rules: talk }, (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* open(sessions)
            yield* prompt(sessions, conversationId, "one")
            yield* sessions.reset({ conversationId, handoff: null, requestId: null })
            yield* prompt(sessions, conversationId, "two")
            return yield* sessions.state({ conversationId })
          }),
        )
        const after = yield* life(path, { rules: talk }, (sessions) =>
          sessions.state({ conversationId: before.conversation_id }),
        )
        expect(after.entries).toBe(before.entries)
      }),
    )
  })
})

describe("an idle conversation", () => {
  it("leaves memory by itself, and the next message finds it as it was", () =>
    Effect.runPromise(
      withNode({ rules: talk, idleMs: 20 }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* prompt(sessions, conversationId, "hi")
          yield* Effect.repeat(sessions.tree, {
            until: (tree: TreeNode) => !JSON.stringify(tree).includes(`conversation-${conversationId}`),
            schedule: Schedule.spaced("10 millis"),
          })
          expect(yield* prompt(sessions, conversationId, "again")).toMatchObject({ status: "done" })
          expect((yield* sessions.state({ conversationId })).entries).toBe(5)
        }),
      ),
    ))
})

describe("a caller", () => {
  it("does not find a conversation of another principal, nor one that is not there", () =>
    Effect.runPromise(
      withNode({ rules: talk }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const theirs = yield* Effect.flip(sessions.state({ conversationId, principal: "mallory" }))
          const none = yield* Effect.flip(sessions.state({ conversationId: 99 as typeof conversationId }))
          expect(theirs).toMatchObject({ _tag: "NotFound", what: `conversation ${conversationId}` })
          expect(none).toMatchObject({ _tag: "NotFound", what: "conversation 99" })
        }),
      ),
    ))

  it("is told what is wrong with a model name and a working directory", () =>
    Effect.runPromise(
      withNode({ rules: talk }, (sessions) =>
        Effect.gen(function* () {
          const openWith = (agent: object) =>
            Effect.flip(sessions.open({ conversationId: null, agent, title: null, requestId: null }))
          expect(yield* openWith({ model: "nobody/has-it" })).toMatchObject({
            _tag: "InvalidRequest",
            path: "agent.model",
          })
          expect((yield* openWith({ cwd: "./x" })).message).toBe(
            'agent.cwd: expected the absolute path of a directory, got "./x"',
          )
          expect(yield* openWith({ cwd: "/no/such/place" })).toMatchObject({
            _tag: "InvalidRequest",
            path: "agent.cwd",
          })
        }),
      ),
    ))

  it("cannot remove a conversation that works, and finds it no more once it is removed", () => {
    const { running, tool } = gate()
    return Effect.runPromise(
      withNode({ rules: gated, tools: [tool] }, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* sessions.submit({ conversationId, content: [text("hi")], requestId: null })
          yield* running
          expect(yield* Effect.flip(sessions.remove({ conversationId }))).toMatchObject({ _tag: "Busy" })
          yield* sessions.cancel({ conversationId })
          expect(yield* sessions.remove({ conversationId })).toEqual({ removed: true })
          expect(yield* Effect.flip(sessions.state({ conversationId }))).toMatchObject({ _tag: "NotFound" })
        }),
      ),
    )
  })
})
