/**
 * Commands of prompts as clients see them: real actors over a database, a scripted model, the plugin InlineBash, and a plugin that asks about
 * commands; and cancels of one submission of several.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Either, FiberId, Schema, type Scope, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { Event, SessionState } from "../../src/domain/event.ts"
import type { ConversationId, SubmissionId } from "../../src/domain/ids.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { anyPlugin, definePlugin } from "../../src/harness/define.ts"
import { SuperPi } from "../../src/super-pi.ts"
import { defineTool } from "../../src/tools/define.ts"

/** What the shell of a test was asked to run, and how a command that hangs is doing. */
const makeWorld = () => ({
  ran: [] as Array<string>,
  began: Deferred.unsafeMake<void>(FiberId.none),
  stopped: Deferred.unsafeMake<void>(FiberId.none),
})
type World = ReturnType<typeof makeWorld>

const shell = ({ began, ran, stopped }: World) =>
  defineTool({
    name: "bash",
    description: "A shell.",
    parameters: Schema.Struct({ command: Schema.String, timeout: Schema.Number }),
    effects: ["exec"],
    execute: ({ command }) =>
      Effect.gen(function* () {
        ran.push(command)
        if (command !== "hang") return { output: [text(`ran ${command}`)] }
        yield* Deferred.succeed(began, undefined)
        return yield* Effect.onInterrupt(Effect.never, () => Deferred.succeed(stopped, undefined))
      }),
  })

const askFirst = anyPlugin(
  definePlugin({
    name: "ask-first",
    description: "Asks about commands that push.",
    hooks: {
      beforeTool: ({ args }) =>
        Effect.succeed(
          args.command === "push"
            ? { type: "ask" as const, rule: "push", title: "May it push?", reason: "It is seen by others." }
            : undefined,
        ),
    },
  }),
)

const rules = [
  { match: "^slow$", steps: [{ text: "slow", delayMs: 600_000 }] },
  { match: ".", steps: [{ text: "done" }] },
]

/** Runs `use` on a node over the database at `path`. */
const onNode = <A>(
  world: World,
  path: string,
  use: (sessions: SessionsService) => Effect.Effect<A, unknown, Scope.Scope>,
): Promise<A> => {
  const harness = defineHarness(
    { id: "test", name: "Test", description: "For tests", prompt: "Test.", plugins: ["ask-first", "inline-bash"] },
    { plugins: [askFirst] },
  )
  return Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        yield* SuperPi
        return yield* use(yield* Sessions)
      }),
    ).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: { path },
          models: { model: "script/test", script: { rules } as never },
          builtinTools: false,
          tools: [shell(world)],
          harness: "test",
          extraPlugins: [askFirst],
          extraHarnesses: [harness],
        }),
      ),
    ),
  )
}

const inDirectory = async (use: (path: string) => Promise<void>): Promise<void> => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-commands-"))
  try {
    await use(join(directory, "test.db"))
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}

const open = (sessions: SessionsService) =>
  Effect.map(
    sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
    (state) => state.conversation_id,
  )

/** A client that can answer: the first event that satisfies a test, and the sight of the conversation as it came. */
const client = (sessions: SessionsService, conversationId: ConversationId) =>
  Effect.gen(function* () {
    const joined = yield* Deferred.make<SessionState>()
    const asked = yield* Deferred.make<Extract<Event, { readonly type: "permission_request" }>>()
    yield* sessions.watch({ conversationId, after: null, interactive: true }).pipe(
      Stream.runForEach((event) => {
        if (event.type === "snapshot") return Deferred.succeed(joined, event.session)
        return event.type === "permission_request" ? Deferred.succeed(asked, event) : Effect.void
      }),
      Effect.forkScoped,
    )
    return { session: yield* Deferred.await(joined), asked: Deferred.await(asked) }
  })

const submit = (sessions: SessionsService, conversationId: ConversationId, prompt: string) =>
  Effect.map(
    sessions.submit({ conversationId, content: [text(prompt)], requestId: null }),
    ({ submission_id }) => submission_id,
  )

const prompts = (sessions: SessionsService, conversationId: ConversationId) =>
  Effect.map(sessions.transcript({ conversationId }), (entries) =>
    entries.flatMap(({ model }) => model.flatMap((one) => (one.role === "user" ? [textOf(one.content)] : []))),
  )

const waitFor = (sessions: SessionsService, conversationId: ConversationId, match: (event: Event) => boolean) =>
  Stream.runDrain(Stream.takeUntil(sessions.watch({ conversationId, after: null }), match))

describe("a command of a prompt that a person has to allow", () => {
  it("is asked about, answered by a client that comes after a restart, and its output stands in the prompt", () =>
    inDirectory(async (path) => {
      const world = makeWorld()
      const before = await onNode(world, path, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const { asked } = yield* client(sessions, conversationId)
          const submissionId = yield* submit(sessions, conversationId, "see !{push}")
          const behind = yield* submit(sessions, conversationId, "behind")
          const question = yield* asked
          expect(question).toMatchObject({ tool: "bash", title: "May it push?", reason: "It is seen by others." })
          expect(question.arguments).toMatchObject({ command: "push" })
          return { conversationId, submissionId, behind, question: question.question_id }
        }),
      )
      expect(world.ran).toEqual([])
      await onNode(world, path, (sessions) =>
        Effect.gen(function* () {
          const { behind, conversationId, question, submissionId } = before
          const { session } = yield* client(sessions, conversationId)
          expect(session.questions).toMatchObject([{ question_id: question, tool: "bash" }])
          expect(session.queued).toEqual([submissionId, behind])
          yield* sessions.answer({ questionId: question, answer: "allow_once", requestId: null, client: null })
          const settled = yield* sessions.awaitSubmission({ conversationId, submissionId })
          expect(settled).toMatchObject({ status: "done", text: "done" })
          yield* sessions.awaitSubmission({ conversationId, submissionId: behind })
          expect(yield* prompts(sessions, conversationId)).toEqual(["see ran push", "behind"])
        }),
      )
      expect(world.ran).toEqual(["push"])
    }))

  it("is refused where no client can answer, and the prompt says so", () =>
    inDirectory(async (path) => {
      const world = makeWorld()
      await onNode(world, path, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const submissionId = yield* submit(sessions, conversationId, "see !{push}")
          yield* sessions.awaitSubmission({ conversationId, submissionId })
          expect(yield* prompts(sessions, conversationId)).toEqual([
            expect.stringMatching(/^see \[not run: It is seen by others\. Nobody could be asked/),
          ])
        }),
      )
      expect(world.ran).toEqual([])
    }))
})

describe("a command of a prompt that is taken back", () => {
  const cases: ReadonlyArray<
    readonly [string, (sessions: SessionsService, conversationId: ConversationId, id: SubmissionId) => unknown]
  > = [
    ["a cancel", (sessions, conversationId) => sessions.cancel({ conversationId })],
    ["a cancel of it", (sessions, conversationId, submissionId) => sessions.cancel({ conversationId, submissionId })],
    ["its withdrawal", (sessions, conversationId, submissionId) => sessions.withdraw({ conversationId, submissionId })],
  ]
  it.each(cases)("is stopped by %s", (_, end) =>
    inDirectory(async (path) => {
      const world = makeWorld()
      await onNode(world, path, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const submissionId = yield* submit(sessions, conversationId, "!{hang}")
          yield* Deferred.await(world.began)
          yield* end(sessions, conversationId, submissionId) as Effect.Effect<unknown, unknown>
          yield* Deferred.await(world.stopped)
          const settled = yield* sessions.awaitSubmission({ conversationId, submissionId })
          expect(settled).toMatchObject({ status: "unanswered", reason: "withdrawn" })
          // Answered when nothing is being stopped any more.
          yield* sessions.cancel({ conversationId })
          expect(yield* sessions.effects({ running: true })).toEqual([])
        }),
      )
    }),
  )
})

describe("a cancel of one submission", () => {
  it("ends its run and leaves what others queued; one that has ended is not cancelled, and an unknown one not found", () =>
    inDirectory((path) =>
      onNode(makeWorld(), path, (sessions) =>
        Effect.gen(function* () {
          const conversationId = yield* open(sessions)
          const mine = yield* submit(sessions, conversationId, "slow")
          yield* waitFor(
            sessions,
            conversationId,
            (event) =>
              (event.type === "state_changed" && event.to === "streaming_llm") ||
              (event.type === "snapshot" && event.session.state === "streaming_llm"),
          )
          const theirs = yield* submit(sessions, conversationId, "theirs")
          const other = yield* submit(sessions, conversationId, "another")
          expect(yield* sessions.cancel({ conversationId, submissionId: other })).toEqual({ cancelled: true })
          expect(yield* sessions.cancel({ conversationId, submissionId: mine })).toEqual({ cancelled: true })
          const end = (submissionId: SubmissionId) => sessions.awaitSubmission({ conversationId, submissionId })
          expect(yield* end(mine)).toMatchObject({ status: "unanswered", reason: "aborted" })
          expect(yield* end(other)).toMatchObject({ status: "unanswered", reason: "withdrawn" })
          expect(yield* end(theirs)).toMatchObject({ status: "done", text: "done" })
          expect(yield* sessions.cancel({ conversationId, submissionId: theirs })).toEqual({ cancelled: false })
          const unknown = yield* Effect.either(sessions.cancel({ conversationId, submissionId: 9_999 as SubmissionId }))
          expect(Either.isLeft(unknown) && unknown.left).toMatchObject({ _tag: "NotFound" })
          const elsewhere = yield* open(sessions)
          const foreign = yield* Effect.either(sessions.cancel({ conversationId: elsewhere, submissionId: theirs }))
          expect(Either.isLeft(foreign) && foreign.left).toMatchObject({ _tag: "NotFound" })
        }),
      ),
    ))
})
