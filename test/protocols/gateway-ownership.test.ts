/**
 * Two principals on one node: what belongs to one is, for the other, exactly like what is not there. Every method of the contract has a row,
 * which the compiler sees to, and so has every method of JSON-RPC.
 */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Either, Layer, Stream } from "effect"
import { WebSocket } from "ws"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { Failure } from "../../src/domain/failure.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import { Gateway, SuperPi } from "../../src/index.ts"
import type { Script } from "../../src/models/providers/script-file.ts"

const rules: Script["rules"] = [
  {
    match: "^ask$",
    steps: [
      { tools: [{ name: "ask_question", args: { questions: [{ question: "Which?", options: [{ label: "red" }] }] } }] },
      { text: "done" },
    ],
  },
  { match: ".", steps: [{ text: "an answer" }] },
]

const node = SuperPi.layer({
  storage: "memory",
  harness: "super-pi-code",
  models: { env: {}, script: { rules } },
  defaults: { model: "script/x" },
})

/** What alice has: a conversation, something that she said in it, and a question that waits. */
const alices = Effect.gen(function* () {
  const sessions = yield* Sessions
  const principal = "alice"
  const opened = yield* sessions.open({ conversationId: null, agent: {}, title: "hers", requestId: null, principal })
  const conversationId = opened.conversation_id
  const asked = yield* Deferred.make<TaskId>()
  yield* sessions.watch({ conversationId, after: null, interactive: true, principal }).pipe(
    Stream.runForEach((event) =>
      event.type === "ui_request" ? Deferred.succeed(asked, event.question_id) : Effect.void,
    ),
    Effect.forkScoped,
  )
  for (const name of ["hers", "private"])
    yield* sessions.setName({ namespace: "openai", name, conversationId, principal })
  const content = [{ type: "text" as const, text: "ask" }]
  const { submission_id } = yield* sessions.submit({ conversationId, content, requestId: "r", principal })
  const questionId = yield* Deferred.await(asked)
  return { sessions, conversationId, submissionId: submission_id, questionId, principal }
})

interface Ids {
  readonly conversationId: ConversationId
  readonly submissionId: SubmissionId
  readonly questionId: TaskId
  readonly principal: string
}

const nowhere = {
  conversationId: ConversationId.make(999_999),
  submissionId: SubmissionId.make(999_998),
  questionId: TaskId.make(999_997),
}

/** Methods that say nothing about one conversation, and lists, which are looked at on their own. */
const elsewhere = [
  "list",
  "listNamed",
  "questions",
  "effects",
  "harnesses",
  "queues",
  "changeQueue",
  "tasks",
  "task",
  "changeTask",
  "tree",
] as const
type Elsewhere = (typeof elsewhere)[number]

type Call = (sessions: SessionsService, ids: Ids) => Effect.Effect<unknown, Failure>

const calls: { readonly [M in Exclude<keyof SessionsService, Elsewhere>]: Call } = {
  open: (s, { conversationId, principal }) =>
    s.open({ conversationId, agent: {}, title: null, requestId: null, principal }),
  openNamed: (s, { principal }) =>
    // The name is free for everybody else: it opens a conversation of their own.
    Effect.map(
      s.openNamed({ namespace: "openai", name: "hers", agent: {}, title: null, principal }),
      ({ created }) => created,
    ),
  setName: (s, { conversationId, principal }) =>
    s.setName({ namespace: "acp", name: "mine", conversationId, principal }),
  findNamed: (s, { principal }) => s.findNamed({ namespace: "openai", name: "private", principal }),
  submit: (s, { conversationId, principal }) =>
    s.submit({ conversationId, content: [{ type: "text", text: "x" }], requestId: "r", principal }),
  write: (s, { conversationId, principal }) =>
    s.write({ conversationId, kind: "app.note", data: 1, requestId: null, principal }),
  reset: (s, { conversationId, principal }) => s.reset({ conversationId, handoff: null, requestId: null, principal }),
  withdraw: (s, { conversationId, submissionId, principal }) => s.withdraw({ conversationId, submissionId, principal }),
  fork: (s, { conversationId, principal }) =>
    s.fork({ conversationId, entryId: EntryId.make(1), agent: {}, title: null, requestId: null, principal }),
  submission: (s, { conversationId, submissionId, principal }) =>
    s.submission({ conversationId, submissionId, requestId: null, principal }),
  submissions: (s, { conversationId, principal }) => s.submissions({ conversationId, principal }),
  awaitSubmission: (s, { conversationId, submissionId, principal }) =>
    s.awaitSubmission({ conversationId, submissionId, principal }),
  watch: (s, { conversationId, principal }) =>
    Stream.runHead(s.watch({ conversationId, after: null, interactive: true, principal })),
  cancel: (s, { conversationId, principal }) => s.cancel({ conversationId, principal }),
  state: (s, { conversationId, principal }) => s.state({ conversationId, principal }),
  configure: (s, { conversationId, principal }) => s.configure({ conversationId, agent: {}, principal }),
  transcript: (s, { conversationId, principal }) => s.transcript({ conversationId, principal }),
  remove: (s, { conversationId, principal }) => s.remove({ conversationId, principal }),
  compact: (s, { conversationId, principal }) => s.compact({ conversationId, instructions: null, principal }),
  retry: (s, { conversationId, principal }) => s.retry({ conversationId, principal }),
  settleEffect: (s, { questionId, principal }) => s.settleEffect({ taskId: questionId, answer: "ignore", principal }),
  checkpoints: (s, { conversationId, principal }) => s.checkpoints({ conversationId, principal }),
  undo: (s, { conversationId, principal }) => s.undo({ conversationId, checkpoint: null, principal }),
  why: (s, { conversationId, principal }) => s.why({ conversationId, call: "1", principal }),
  answer: (s, { questionId, principal }) =>
    s.answer({ questionId, answer: "allow_once", requestId: null, client: null, principal }),
  addMcpServers: (s, { conversationId, principal }) => s.addMcpServers({ conversationId, servers: [], principal }),
  mcpServers: (s, { conversationId, principal }) => s.mcpServers({ conversationId, principal }),
  restartMcpServer: (s, { conversationId, principal }) => s.restartMcpServer({ name: "x", conversationId, principal }),
}

/** An outcome without the numbers in it, which are those that were asked for. */
const plain = (outcome: Either.Either<unknown, Failure>): string =>
  JSON.stringify(
    Either.match(outcome, {
      onLeft: (failure) => ({ failed: { ...failure, _tag: failure._tag, message: failure.message } }),
      onRight: (value) => ({ answered: value }),
    }),
  ).replace(/\d+/g, "N")

describe("another principal", () => {
  it.scopedLive("finds with each method of the contract what it would find where there is nothing", () =>
    Effect.gen(function* () {
      const { sessions, ...hers } = yield* alices
      for (const [method, call] of Object.entries(calls)) {
        const other = yield* Effect.either(call(sessions, { ...hers, principal: "bob" }))
        const nothing = yield* Effect.either(call(sessions, { ...nowhere, principal: "carol" }))
        expect(`${method}: ${plain(other)}`).toBe(`${method}: ${plain(nothing)}`)
      }
      const principal = "bob"
      const mine = yield* sessions.list({ principal })
      expect(mine.map(({ title }) => title)).not.toContain("hers")
      expect(yield* sessions.questions({ conversationId: null, principal })).toEqual([])
      expect(yield* sessions.effects({ running: true, principal })).toEqual([])
      const names = yield* sessions.listNamed({ namespace: "openai", principal })
      expect(names.map(({ conversation_id }) => conversation_id)).not.toContain(hers.conversationId)
      // Nothing of all that did anything to hers.
      const state = yield* sessions.state({ conversationId: hers.conversationId, principal: "alice" })
      expect(state).toMatchObject({ title: "hers", questions: [{ question_id: hers.questionId }] })
    }).pipe(Effect.provide(node)),
  )

  const gateway = Layer.provideMerge(
    Gateway.layer({ port: 0, settings: { tokens: { alice: "key-a", bob: "key-b", local: "key-l" } } }),
    node,
  )

  /** A logged-in WebSocket, asked one thing at a time. */
  const client = (port: number, token: string) =>
    Effect.acquireRelease(
      Effect.promise(async () => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/rpc`, { headers: { authorization: `Bearer ${token}` } })
        await new Promise((opened, failed) => socket.once("open", opened).once("error", failed))
        let ids = 0
        const ask = async (method: string, params: object): Promise<Record<string, unknown>> => {
          const id = ++ids
          const answered = new Promise<Record<string, unknown>>((resolve) => {
            const onMessage = (data: unknown) => {
              const message = JSON.parse(String(data))
              if (message.id !== id) return
              socket.off("message", onMessage)
              resolve(message)
            }
            socket.on("message", onMessage)
          })
          socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }))
          return answered
        }
        return { ask, close: () => socket.terminate() }
      }),
      (opened) => Effect.sync(opened.close),
    )

  it.scopedLive("gets over JSON-RPC the same -32004, and nothing about the node as a whole", () =>
    Effect.gen(function* () {
      const hers = yield* alices
      const { port } = yield* Gateway
      const bob = yield* client(port, "key-b")
      const carol = yield* client(port, "key-a")
      const local = yield* client(port, "key-l")
      const methods = (yield* Effect.promise(() => bob.ask("node.info", {}))).result as {
        readonly methods: Array<string>
      }
      const asked = (method: string, ids: Omit<Ids, "principal">) => {
        const params: Record<string, unknown> = { conversationId: ids.conversationId }
        const more: Record<string, object> = {
          "session.submit": { content: "x" },
          "session.write": { kind: "app.note" },
          "session.withdraw": { submissionId: ids.submissionId },
          "session.submission": { submissionId: ids.submissionId },
          "session.await": { submissionId: ids.submissionId },
          "session.configure": { agent: {} },
          "call.why": { call: "1" },
          "mcp.restart": { name: "x" },
        }
        return { ...params, ...more[method] }
      }
      const free = ["auth.login", "node.info", "models.list", "workspace.metadata", "session.list", "effect.list"]
      const operator = methods.methods.filter((one) => /^(queue|task)\.|^node\.tree$|^mcp\.add$/.test(one))
      const others = ["session.ack", "session.unwatch", "ui.respond", "effect.settle", "session.watch"]
      const owned = methods.methods.filter((one) => ![...free, ...operator, ...others].includes(one))
      expect(owned.length).toBeGreaterThan(18)
      for (const method of owned) {
        const answer = yield* Effect.promise(() => bob.ask(method, asked(method, hers)))
        const nothing = yield* Effect.promise(() => bob.ask(method, asked(method, nowhere)))
        expect([method, answer.error], method).toMatchObject([method, { code: -32004 }])
        expect(JSON.stringify(answer.error).replace(/\d+/g, "N")).toBe(
          JSON.stringify(nothing.error).replace(/\d+/g, "N"),
        )
      }
      for (const [method, key] of [
        ["ui.respond", "questionId"],
        ["effect.settle", "taskId"],
      ] as const) {
        const answer = method === "ui.respond" ? "allow_once" : "ignore"
        const other = yield* Effect.promise(() => bob.ask(method, { [key]: hers.questionId, answer }))
        expect(other.error).toMatchObject({ code: -32004 })
      }
      for (const method of operator) {
        const params = {
          "mcp.add": { conversationId: hers.conversationId, servers: [] },
          "queue.pause": { queue: "x" },
          "queue.resume": { queue: "x" },
          "queue.retry": { jobId: 1 },
          "queue.cancel": { jobId: 1 },
          "task.show": { taskId: 1 },
          "task.retry": { taskId: 1 },
          "task.abort": { taskId: 1 },
          "task.discard": { taskId: 1 },
        }[method]
        const refused = yield* Effect.promise(() => bob.ask(method, params ?? {}))
        expect([method, refused.error]).toMatchObject([method, { code: -32003, data: { rule: "operator" } }])
      }
      expect((yield* Effect.promise(() => local.ask("queue.list", {}))).result).toBeInstanceOf(Array)
      expect((yield* Effect.promise(() => local.ask("node.tree", {}))).result).toHaveProperty("children")
      const own = yield* Effect.promise(() => carol.ask("session.state", { conversationId: hers.conversationId }))
      expect(own.result).toMatchObject({ title: "hers" })
    }).pipe(Effect.provide(gateway)),
  )
})
