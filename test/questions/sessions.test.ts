/**
 * Questions as clients see them: real actors, a scripted model, a plugin that asks about every call of the tool `act`.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Either, Schema, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { AgentDocument } from "../../src/domain/document.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId, TaskId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { anyPlugin, definePlugin } from "../../src/harness/define.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"

/** How often the tool ran, for one test. */
interface World {
  acted: number
}

const actTool = (world: World): Tool =>
  defineTool({
    name: "act",
    description: "Has effects.",
    parameters: Schema.Struct({}),
    effects: ["exec"],
    execute: () =>
      Effect.sync(() => {
        world.acted++
        return { output: [text("acted")] }
      }),
  })

/** Whether the session says that the tool may always run. */
const allowedFor = ({ settingsOverride }: AgentDocument): boolean =>
  JSON.stringify(settingsOverride ?? {}) === JSON.stringify({ permissions: { allowTools: ["act"] } })

const askFirst = (timeoutMs: number) =>
  anyPlugin(
    definePlugin({
      name: "ask-first",
      description: "Asks about every call.",
      hooks: {
        beforeTool: ({ name }, { agent }) =>
          Effect.succeed(
            name === "act" && !allowedFor(agent)
              ? {
                  type: "ask" as const,
                  rule: "ask",
                  title: "May it act?",
                  reason: "It has effects.",
                  remember: { commands: [], tools: ["act"] },
                  timeoutMs,
                }
              : undefined,
          ),
      },
    }),
  )

const choice = {
  questions: [{ question: "Which colour?", options: [{ label: "red" }, { label: "blue" }] }, { question: "Why?" }],
}
const rules = [
  { match: "^act$", steps: [{ text: "acting", tools: [{ name: "act", args: {} }] }, { text: "done" }] },
  { match: "^ask$", steps: [{ text: "asking", tools: [{ name: "ask_question", args: choice }] }, { text: "done" }] },
]

interface Node {
  readonly sessions: SessionsService
}

/** Runs `use` on a node over the database at `path`, in memory without one. */
const onNode = <A>(
  use: (node: Node) => Effect.Effect<A, unknown, Scope.Scope>,
  options: { readonly path?: string; readonly world?: World; readonly timeoutMs?: number } = {},
): Promise<A> => {
  const { path, timeoutMs = 120_000, world = { acted: 0 } } = options
  const plugin = askFirst(timeoutMs)
  const harness = defineHarness(
    { id: "test", name: "Test", description: "For tests", prompt: "Test.", plugins: ["ask-first", "questionnaire"] },
    { plugins: [plugin] },
  )
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        yield* SuperPi
        return yield* use({ sessions: yield* Sessions })
      }),
    ).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: path === undefined ? "memory" : { path },
          models: { model: "script/test", script: { rules } as never },
          builtinTools: false,
          tools: [actTool(world)],
          harness: "test",
          extraPlugins: [plugin],
          extraHarnesses: [harness],
        }),
      ),
    ),
  )
}

const open = (sessions: SessionsService, agent = {}): Effect.Effect<ConversationId, unknown> =>
  Effect.map(
    sessions.open({ conversationId: null, agent, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

/** A client that watches: its events so far, and the first that satisfies a test, from the beginning on. */
const client = (sessions: SessionsService, conversationId: ConversationId, interactive: boolean) =>
  Effect.gen(function* () {
    const events: Array<Event> = []
    const waiting: Array<{ readonly match: (event: Event) => boolean; readonly done: Deferred.Deferred<Event> }> = []
    const joined = yield* Deferred.make<void>()
    const fiber = yield* sessions.watch({ conversationId, after: null, interactive }).pipe(
      Stream.runForEach((event) =>
        Effect.gen(function* () {
          events.push(event)
          if (event.type === "snapshot") yield* Deferred.succeed(joined, undefined)
          for (const { done, match } of waiting) if (match(event)) yield* Deferred.succeed(done, event)
        }),
      ),
      Effect.forkScoped,
    )
    yield* Deferred.await(joined)
    const first = (match: (event: Event) => boolean): Effect.Effect<Event> =>
      Effect.gen(function* () {
        const before = events.find(match)
        if (before !== undefined) return before
        const done = yield* Deferred.make<Event>()
        waiting.push({ match, done })
        return yield* Deferred.await(done)
      })
    const asked = Effect.map(
      first(({ type }) => type === "permission_request" || type === "ui_request"),
      (event): TaskId => {
        if (event.type === "permission_request" || event.type === "ui_request") return event.question_id
        throw new Error(event.type)
      },
    )
    return { events, first, asked, fiber }
  })

const submit = (sessions: SessionsService, conversationId: ConversationId, prompt: string) =>
  Effect.map(sessions.submit({ conversationId, content: [text(prompt)], requestId: null }), ({ submission_id }) => ({
    conversationId,
    submissionId: submission_id,
  }))

const toolResult = (sessions: SessionsService, conversationId: ConversationId) =>
  Effect.map(sessions.transcript({ conversationId }), (entries) => {
    const message = entries.flatMap((entry) => entry.model).find((one) => one.role === "tool")
    if (message?.role !== "tool") throw new Error("no result")
    return message
  })

const reply = (
  questionId: TaskId,
  answer: "allow_once" | "allow_always" | "reject_once",
  requestId: string | null = null,
) => ({
  questionId,
  answer,
  requestId,
  client: null,
})

describe("a call that asks", () => {
  it("runs once a client that watches allows it", () => {
    const world = { acted: 0 }
    return onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const person = yield* client(sessions, conversationId, true)
          const turn = yield* submit(sessions, conversationId, "act")
          const question = yield* person.asked
          expect(world.acted).toBe(0)
          const { state, questions } = yield* sessions.state({ conversationId })
          expect({ state, questions }).toMatchObject({
            state: "executing_tools",
            questions: [{ question_id: question, kind: "permission", title: "May it act?", tool: "act" }],
          })
          yield* sessions.answer({ ...reply(question, "allow_once"), client: "terminal of Ann" })
          expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done", text: "done" })
          expect(world.acted).toBe(1)
          const settled = yield* person.first(({ type }) => type === "question_settled")
          expect(settled).toMatchObject({ question_id: question, result: "allowed", by: "local, terminal of Ann" })
          const { callId } = yield* toolResult(sessions, conversationId)
          expect((yield* sessions.why({ conversationId, call: callId })).trail).toMatchObject([
            { plugin: "ask-first", decision: "ask" },
            { plugin: "question", decision: "allow_once", rule: "local, terminal of Ann" },
          ])
        }),
      { world },
    )
  })

  it("is blocked at once where only clients watch that cannot answer", () => {
    const world = { acted: 0 }
    return onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          yield* client(sessions, conversationId, false)
          const turn = yield* submit(sessions, conversationId, "act")
          expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done" })
          expect(world.acted).toBe(0)
          const result = yield* toolResult(sessions, conversationId)
          expect(result.details).toEqual({ permission: { question: null, result: "nobody" } })
          expect(textOf(result.content)).toBe(
            "It has effects. Nobody could be asked: no client that can answer is connected.",
          )
        }),
      { world },
    )
  })

  it("waits for a client where the conversation is set to wait", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions, { questions: "wait" })
        const looker = yield* client(sessions, conversationId, false)
        const turn = yield* submit(sessions, conversationId, "act")
        const question = yield* looker.asked
        yield* sessions.answer(reply(question, "allow_once"))
        expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done" })
        expect(textOf((yield* toolResult(sessions, conversationId)).content)).toBe("acted")
      }),
    ))

  it("has its time, after which it is expired and not denied", () =>
    onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const person = yield* client(sessions, conversationId, true)
          const turn = yield* submit(sessions, conversationId, "act")
          const question = yield* person.asked
          expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done" })
          expect((yield* toolResult(sessions, conversationId)).details).toEqual({
            permission: { question, result: "expired" },
          })
          const late = yield* Effect.flip(sessions.answer(reply(question, "allow_once")))
          expect(late).toMatchObject({ _tag: "Refused", rule: "question_settled" })
          expect(late.message).toMatch(/expired at/)
        }),
      { timeoutMs: 20 },
    ))

  it("is withdrawn by a cancel, and an answer that comes later is told so", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        const turn = yield* submit(sessions, conversationId, "act")
        const question = yield* person.asked
        expect(yield* sessions.cancel({ conversationId })).toEqual({ cancelled: true })
        expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "unanswered", reason: "aborted" })
        expect(yield* person.first(({ type }) => type === "question_settled")).toMatchObject({ result: "withdrawn" })
        expect((yield* Effect.flip(sessions.answer(reply(question, "allow_once")))).message).toMatch(/withdrawn at/)
      }),
    ))
})

describe("of several answers", () => {
  it("the first counts, and the others are told who won", () => {
    const world = { acted: 0 }
    return onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const person = yield* client(sessions, conversationId, true)
          const turn = yield* submit(sessions, conversationId, "act")
          const question = yield* person.asked
          const said = ["allow_once", "reject_once", "allow_always"] as const
          const answers = yield* Effect.forEach(
            said,
            (answer, at) => Effect.either(sessions.answer({ ...reply(question, answer), client: `client ${at}` })),
            { concurrency: "unbounded" },
          )
          const won = answers.filter(Either.isRight)
          expect(won).toHaveLength(1)
          const winner = won[0]?.right.answer ?? ""
          for (const other of answers.filter(Either.isLeft)) {
            expect(other.left).toMatchObject({ _tag: "Refused", rule: "question_settled" })
            expect(other.left.message).toMatch(`was answered with ${winner} by local, client`)
          }
          yield* sessions.awaitSubmission(turn)
          expect(world.acted).toBe(winner === "reject_once" ? 0 : 1)
        }),
      { world },
    )
  })

  it("the same request again is answered alike", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        yield* submit(sessions, conversationId, "act")
        const question = yield* person.asked
        const first = yield* sessions.answer(reply(question, "allow_once", "request-1"))
        expect(yield* sessions.answer(reply(question, "allow_once", "request-1"))).toEqual(first)
        expect(yield* Effect.flip(sessions.answer(reply(question, "allow_once", "request-2")))).toMatchObject({
          rule: "question_settled",
        })
      }),
    ))

  it("one that does not fit is refused by name, and the question stays open", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        yield* submit(sessions, conversationId, "act")
        const question = yield* person.asked
        const wrong = { ...reply(question, "allow_once"), answer: { colour: { selected: ["red"], text: null } } }
        expect(yield* Effect.flip(sessions.answer(wrong))).toMatchObject({ _tag: "InvalidRequest", path: "answer" })
        expect(yield* sessions.questions({ conversationId: null })).toMatchObject([
          { conversation_id: conversationId, question: { question_id: question } },
        ])
        yield* sessions.answer(reply(question, "reject_once"))
      }),
    ))

  it("none of somebody else's is taken", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        yield* submit(sessions, conversationId, "act")
        const question = yield* person.asked
        const other = { ...reply(question, "allow_once"), principal: "mallory" }
        expect(yield* Effect.flip(sessions.answer(other))).toMatchObject({ _tag: "NotFound" })
        expect(yield* sessions.questions({ conversationId: null, principal: "mallory" })).toEqual([])
      }),
    ))
})

describe("an open question", () => {
  it("outlives the client that was there, and is in the snapshot of the next one", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const turn = yield* Effect.scoped(
          Effect.gen(function* () {
            const person = yield* client(sessions, conversationId, true)
            const turn = yield* submit(sessions, conversationId, "act")
            yield* person.asked
            return turn
          }),
        )
        const next = yield* client(sessions, conversationId, true)
        const snapshot = yield* next.first(({ type }) => type === "snapshot")
        const [question] = snapshot.type === "snapshot" ? snapshot.session.questions : []
        if (question === undefined) throw new Error("no question in the snapshot")
        yield* sessions.answer(reply(question.question_id, "allow_once"))
        expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done" })
      }),
    ))

  it("outlives the node, and the one after it takes the answer", async () => {
    const directory = mkdtempSync(join(tmpdir(), "super-pi-questions-"))
    const path = join(directory, "test.db")
    const world = { acted: 0 }
    try {
      const { conversationId, submissionId, question } = await onNode(
        ({ sessions }) =>
          Effect.gen(function* () {
            const conversationId = yield* open(sessions)
            const person = yield* client(sessions, conversationId, true)
            const turn = yield* submit(sessions, conversationId, "act")
            return { ...turn, question: yield* person.asked }
          }),
        { path, world },
      )
      expect(world.acted).toBe(0)
      await onNode(
        ({ sessions }) =>
          Effect.gen(function* () {
            yield* sessions.answer(reply(question, "allow_once"))
            expect(yield* sessions.awaitSubmission({ conversationId, submissionId })).toMatchObject({ status: "done" })
          }),
        { path, world },
      )
      expect(world.acted).toBe(1)
    } finally {
      rmSync(directory, { recursive: true, force: true })
    }
  })
})

describe("an answer for the session", () => {
  it("is kept in its choices, which the next call is judged by, and a fork goes on with it", () => {
    const world = { acted: 0 }
    return onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const person = yield* client(sessions, conversationId, true)
          const turn = yield* submit(sessions, conversationId, "act")
          yield* sessions.answer(reply(yield* person.asked, "allow_always"))
          yield* sessions.awaitSubmission(turn)
          const forked = yield* sessions.fork({
            conversationId,
            entryId: null,
            agent: {},
            title: null,
            requestId: null,
          })
          for (const id of [conversationId, forked.conversation_id]) {
            yield* sessions.awaitSubmission(yield* submit(sessions, id, "act"))
          }
          expect(world.acted).toBe(3)
          expect(person.events.filter(({ type }) => type === "permission_request")).toHaveLength(1)
        }),
      { world },
    )
  })

  it("counts for no other session", () => {
    const world = { acted: 0 }
    return onNode(
      ({ sessions }) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const person = yield* client(sessions, conversationId, true)
          const turn = yield* submit(sessions, conversationId, "act")
          yield* sessions.answer(reply(yield* person.asked, "allow_always"))
          yield* sessions.awaitSubmission(turn)
          const other = yield* open(sessions)
          yield* sessions.awaitSubmission(yield* submit(sessions, other, "act"))
          expect(world.acted).toBe(1)
        }),
      { world },
    )
  })
})

describe("the tool ask_question", () => {
  it("gives the model what the person chose, and programs the answers", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        const turn = yield* submit(sessions, conversationId, "ask")
        const answer = { q1: { selected: ["blue"], text: null }, q2: { selected: [], text: "it is calm" } }
        yield* sessions.answer({ questionId: yield* person.asked, answer, requestId: null, client: null })
        expect(yield* sessions.awaitSubmission(turn)).toMatchObject({ status: "done" })
        const done = yield* person.first(({ type }) => type === "tool_completed")
        expect(done).toMatchObject({ is_error: false, structured_output: { answers: answer } })
        expect(textOf((yield* toolResult(sessions, conversationId)).content)).toBe(
          "Which colour? → blue\nWhy? → it is calm",
        )
      }),
    ))

  it("fails at once where nobody can answer, and says so when it is declined", () =>
    onNode(({ sessions }) =>
      Effect.gen(function* () {
        const alone = yield* open(sessions)
        yield* sessions.awaitSubmission(yield* submit(sessions, alone, "ask"))
        expect((yield* toolResult(sessions, alone)).details).toEqual({ question: { result: "nobody" } })
        const conversationId = yield* open(sessions)
        const person = yield* client(sessions, conversationId, true)
        const turn = yield* submit(sessions, conversationId, "ask")
        yield* sessions.answer(reply(yield* person.asked, "reject_once"))
        yield* sessions.awaitSubmission(turn)
        expect((yield* toolResult(sessions, conversationId)).details).toEqual({ question: { result: "denied" } })
      }),
    ))
})
