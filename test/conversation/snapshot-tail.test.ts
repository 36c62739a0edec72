/**
 * A snapshot and its tail say what somebody knows who watched from the beginning: for every field, wherever one joins, after coming back with
 * `after`, and across a restart of the machine.
 */
import { tmpdir } from "node:os"
import { Deferred, Effect, Schema, type Scope, Stream } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { AgentDocument } from "../../src/domain/document.ts"
import type { Event, SessionState } from "../../src/domain/event.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { followed } from "../../src/domain/session-follow.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { anyPlugin, definePlugin } from "../../src/harness/define.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { defineTool } from "../../src/tools/define.ts"

const act = defineTool({
  name: "act",
  description: "Acts.",
  parameters: Schema.Struct({}),
  effects: ["exec"],
  execute: (_, { emit }) => Effect.as(emit("acting\n"), { output: [text("acted")] }),
})

const asks = anyPlugin(
  definePlugin({
    name: "asks",
    description: "Asks before act.",
    hooks: {
      beforeTool: ({ name }) =>
        Effect.succeed(
          name === "act" ? { type: "ask" as const, rule: "ask", title: "Act?", reason: "Why not." } : undefined,
        ),
    },
  }),
)

const harness = (id: string) =>
  defineHarness(
    { id, name: id, description: "For tests", prompt: "Test.", plugins: ["asks", "todo", "subagent"] },
    { plugins: [asks] },
  )

const todo = (action: object) => ({ name: "todo", args: action })
const rules = [
  { match: "^say", steps: [{ text: "a short answer", thinking: "a thought", chunks: 3 }] },
  {
    match: "^plan",
    steps: [
      { text: "planning", tools: [todo({ action: "add", items: [{ text: "one" }, { text: "two" }] })] },
      { tools: [todo({ action: "clear" }), todo({ action: "add", items: [{ text: "three" }] })] },
      { text: "planned" },
    ],
  },
  {
    match: "^act",
    steps: [
      {
        text: "I act",
        tools: [
          { name: "act", args: {} },
          { name: "act", args: {} },
        ],
      },
      { text: "done" },
    ],
  },
  { match: "^cut", steps: [{ text: "half an", cut: true, times: 1 }, { text: "a whole one" }] },
  { match: "^fail", steps: [{ status: 400, message: "no" }] },
  {
    match: "^hand",
    steps: [
      { tools: [{ name: "delegate_subagent", args: { tasks: [{ role: "scout", task: "say something" }] } }] },
      { text: "they said it" },
    ],
  },
]

type Step =
  | { readonly type: "prompt"; readonly what: string }
  | { readonly type: "configure"; readonly agent: AgentDocument }
  | { readonly type: "cancel" | "compact" | "answer" | "idle" }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant("prompt" as const),
      what: fc.constantFrom("say", "plan", "act", "cut", "fail", "hand"),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant("configure" as const),
      agent: fc.constantFrom<AgentDocument>(
        { mode: "plan" },
        { mode: "auto" },
        { effort: "high" },
        { model: "script/other" },
        { harness: "second" },
        { outputSchema: { type: "object" } },
        { outputSchema: null },
        { cwd: tmpdir() },
      ),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom("cancel" as const, "compact" as const, "answer" as const, "idle" as const),
    }),
  },
)

/** What no event tells of: how many entries there are, the number itself, and how much of an output is kept. */
const compared = ({ compactions, entries: _, seq_no: __, subagents = [], tools, ...rest }: SessionState) => ({
  ...rest,
  // Of those whose job waits no event tells.
  subagents: subagents.filter(({ running }) => running),
  compactions: compactions.map(({ reason, task }) => ({ reason, task })),
  tools: tools.map(({ output: _output, ...tool }) => tool),
})

interface Watcher {
  readonly events: Array<Event>
  /** What was known after each number. */
  readonly known: Map<number, SessionState>
  state: SessionState | null
}

/** Watches from now on, or behind what was known when somebody left. `each` runs after every event. */
const watch = (
  sessions: SessionsService,
  conversationId: ConversationId,
  from: SessionState | null = null,
  each: (count: number) => Effect.Effect<void> = () => Effect.void,
) =>
  Effect.gen(function* () {
    const joined = yield* Deferred.make<void>()
    const watcher: Watcher = { events: [], known: new Map(), state: from }
    const after = from?.seq_no ?? null
    if (after !== null) yield* Deferred.succeed(joined, undefined)
    yield* sessions.watch({ conversationId, after, interactive: true }).pipe(
      Stream.runForEach((event) =>
        Effect.suspend(() => {
          watcher.events.push(event)
          if (event.type === "snapshot") watcher.state = event.session
          else if (watcher.state !== null) watcher.state = followed(watcher.state, event)
          if (watcher.state !== null) watcher.known.set(event.seq_no, watcher.state)
          return Effect.zipRight(Deferred.succeed(joined, undefined), each(watcher.events.length))
        }),
      ),
      Effect.forkScoped,
    )
    yield* Deferred.await(joined)
    return watcher
  })

const perform = (sessions: SessionsService, conversationId: ConversationId, one: Step) =>
  Effect.gen(function* () {
    switch (one.type) {
      case "prompt":
        yield* sessions.submit({ conversationId, content: [text(one.what)], requestId: null })
        return
      case "configure":
        yield* sessions.configure({ conversationId, agent: one.agent })
        return
      case "cancel":
        yield* sessions.cancel({ conversationId })
        return
      case "compact":
        yield* Effect.fork(Effect.ignore(sessions.compact({ conversationId, instructions: null })))
        return
      case "answer": {
        const [question] = yield* sessions.questions({ conversationId })
        if (question !== undefined) {
          const { question_id } = question.question
          yield* Effect.ignore(
            sessions.answer({ questionId: question_id, answer: "allow_once", requestId: null, client: null }),
          )
        }
        return
      }
      case "idle":
        yield* Effect.yieldNow()
    }
  })

/** Answers what is asked, and takes back what a failed run left queued, until the conversation rests and the watchers know it. */
const settle = (sessions: SessionsService, conversationId: ConversationId, watchers: ReadonlyArray<Watcher>) =>
  Effect.gen(function* () {
    const rests = ({ compactions, state }: SessionState) => state === "idle" && compactions.length === 0
    yield* sessions.watch({ conversationId, after: null }).pipe(
      Stream.scan(null as SessionState | null, (state, event) =>
        event.type === "snapshot" ? event.session : state === null ? null : followed(state, event),
      ),
      Stream.filter((state): state is SessionState => state !== null),
      Stream.tap((state) =>
        state.questions.length > 0
          ? perform(sessions, conversationId, { type: "answer" })
          : rests(state) && state.queued.length > 0
            ? perform(sessions, conversationId, { type: "cancel" })
            : Effect.void,
      ),
      Stream.takeUntil((state) => rests(state) && state.queued.length === 0),
      Stream.runDrain,
    )
    const now = yield* sessions.state({ conversationId })
    // Events that were published before this answer are on their way.
    for (const watcher of watchers) {
      while ((watcher.state?.seq_no ?? 0) < now.seq_no) yield* Effect.yieldNow()
    }
    return now
  })

const onNode = <A>(use: (sessions: SessionsService) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        yield* SuperPi
        return yield* use(yield* Sessions)
      }),
    ).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: "memory",
          models: { model: "script/test", script: { rules } as never },
          builtinTools: false,
          tools: [act],
          harness: "first",
          extraPlugins: [asks],
          extraHarnesses: [harness("first"), harness("second")],
        }),
      ),
    ),
  )

describe("a snapshot and its tail", () => {
  it("say what somebody knows who watched from the beginning, wherever one joins", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(step, { minLength: 2, maxLength: 6 }),
        fc.nat({ max: 5 }),
        fc.nat({ max: 5 }),
        (steps, joins, back) =>
          onNode((sessions) =>
            Effect.gen(function* () {
              const { conversation_id: id } = yield* sessions.open({
                conversationId: null,
                agent: {},
                title: null,
                requestId: null,
              })
              const samples: Array<SessionState> = []
              const sample = Effect.ignore(
                Effect.map(sessions.state({ conversationId: id }), (one) => samples.push(one)),
              )
              // Snapshots in the middle of everything.
              const early = yield* watch(sessions, id, null, (count) =>
                count % 3 === joins % 3 ? Effect.asVoid(Effect.fork(sample)) : Effect.void,
              )
              const watchers = [early]
              let left: SessionState | null = null
              for (const [at, one] of steps.entries()) {
                if (at === joins % steps.length) {
                  const late = yield* watch(sessions, id)
                  watchers.push(late)
                  left = late.state
                }
                yield* perform(sessions, id, one)
                // One that was there before comes back, with what it knew then.
                if (left !== null && at === back % steps.length) watchers.push(yield* watch(sessions, id, left))
              }
              samples.push(yield* settle(sessions, id, watchers))
              for (const { events } of watchers) {
                for (const event of events) if (event.type === "snapshot") samples.push(event.session)
              }
              for (const one of samples) {
                const known = early.known.get(one.seq_no)
                if (known !== undefined) expect(compared(known)).toEqual(compared(one))
              }
              for (const { state, events } of watchers) {
                expect(state === null ? null : compared(state)).toEqual(
                  early.state === null ? null : compared(early.state),
                )
                // Nothing was missed and nothing came twice.
                const numbers = events.flatMap((event) => (event.type === "snapshot" ? [] : [event.seq_no]))
                expect(numbers).toEqual(numbers.map((_, at) => (numbers[0] ?? 0) + at))
              }
            }),
          ),
      ),
      { numRuns: 8 },
    ))
})
