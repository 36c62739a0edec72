/**
 * A small `Sessions` for the tests of the protocols: conversations in memory, optionally with a journal file from which a next one
 * recovers. An input is answered with its own text in capitals. With `hold`, turns start and never end.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs"
import { Deferred, Effect, type Scope, Stream } from "effect"
import type { Receipt, Settled, SubmissionView } from "../../src/actors/contract.ts"
import type { NameTarget, SessionsService } from "../../src/actors/sessions.ts"
import type { AgentDocument } from "../../src/domain/document.ts"
import type { Event, EventBody, SessionState } from "../../src/domain/event.ts"
import { Busy, type Failure, NotFound, Refused, ServiceFailure } from "../../src/domain/failure.ts"
import { ConversationId, EntryId, SubmissionId } from "../../src/domain/ids.ts"
import { textOf } from "../../src/domain/message.ts"
import { noUsage } from "../../src/domain/usage.ts"

interface Submission {
  readonly id: SubmissionId
  readonly requestId: string | null
  readonly text: string
  readonly settled: Deferred.Deferred<Settled>
  answer: string | null
}

interface Conversation {
  readonly id: ConversationId
  readonly requestId: string | null
  readonly events: Array<Event>
  readonly watchers: Set<(event: Event | null) => void>
  readonly submissions: Array<Submission>
  agent: AgentDocument
  title: string | null
}

export interface FakeSessions {
  readonly sessions: SessionsService
  /** Publishes an event of a conversation. */
  readonly emit: (id: number, body: EventBody) => void
  /** Live subscriptions of a conversation. */
  readonly watchers: (id: number) => number
  /** Ends all watches of a conversation, as if it was removed. */
  readonly endWatches: (id: number) => void
  /** Names of the methods called, in order. */
  readonly calls: Array<string>
}

/** How many events a conversation keeps for `after`. */
const tail = 100_000

export const makeFakeSessions = (options: {
  readonly journal?: string
  readonly hold?: boolean
  /** Inputs are admitted durably and never answered: what a crash between the commit and the answer looks like. */
  readonly stall?: boolean
  /** Shown as the root of the tree, to tell owners apart. */
  readonly name?: string
}): Effect.Effect<FakeSessions, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const conversations = new Map<number, Conversation>()
    const calls: Array<string> = []
    let ids = 0

    const journal = (row: object) => {
      if (options.journal !== undefined) appendFileSync(options.journal, `${JSON.stringify(row)}\n`)
    }

    const emit = (conversation: Conversation, body: EventBody) => {
      const event = {
        ...body,
        v: 1 as const,
        conversation_id: conversation.id,
        turn_id: null,
        timestamp_ms: 0,
        seq_no: conversation.events.length + 1,
      } as Event
      conversation.events.push(event)
      for (const watcher of [...conversation.watchers]) watcher(event)
    }

    const find = (id: number): Effect.Effect<Conversation, Failure> =>
      Effect.suspend((): Effect.Effect<Conversation, Failure> => {
        const conversation = conversations.get(id)
        return conversation === undefined ? new NotFound({ what: `conversation ${id}` }) : Effect.succeed(conversation)
      })

    const stateOf = (conversation: Conversation): SessionState => ({
      conversation_id: conversation.id,
      state: "idle",
      model: conversation.agent.model ?? "mock/echo",
      mode: "auto",
      harness: null,
      cwd: conversation.agent.cwd ?? null,
      title: conversation.title,
      turn_id: null,
      partial: null,
      tools: [],
      queued: conversation.submissions.filter((one) => one.answer === null).map((one) => one.id),
      compactions: [],
      questions: [],
      compaction_failure: null,
      retry: null,
      parked: null,
      usage: noUsage,
      entries: conversation.submissions.length * 2,
      seq_no: conversation.events.length,
    })

    const receipt = (conversation: Conversation, submission: Submission): Receipt => ({
      submission_id: submission.id,
      conversation_id: conversation.id,
      status: submission.answer === null ? "queued" : "done",
      reason: null,
      detail: null,
      placed_entry_id: null,
    })

    const viewOf = (conversation: Conversation, submission: Submission): SubmissionView => ({
      ...receipt(conversation, submission),
      kind: "input",
      when_busy: "followUp",
      content: { content: [{ type: "text", text: submission.text }] },
      request_id: submission.requestId,
      created_at: 0,
    })

    const settle = (conversation: Conversation, submission: Submission, answer: string) => {
      submission.answer = answer
      const settled: Settled = {
        ...receipt(conversation, submission),
        entry_id: EntryId.make(submission.id),
        text: answer,
        model: "mock/echo",
        usage: noUsage,
        turns: 1,
      }
      Deferred.unsafeDone(submission.settled, Effect.succeed(settled))
    }

    /** The turn of one input: a few events, then the answer, durably. */
    const run = (conversation: Conversation, submission: Submission) =>
      Effect.gen(function* () {
        emit(conversation, { type: "turn_started", submission_ids: [submission.id], model: "mock/echo" })
        const answer = submission.text.toUpperCase()
        const half = Math.ceil(answer.length / 2)
        emit(conversation, { type: "text_delta", text: answer.slice(0, half) })
        if (options.hold === true) return yield* Effect.never
        yield* Effect.yieldNow()
        emit(conversation, { type: "text_delta", text: answer.slice(half) })
        journal({ answer: submission.id, text: answer })
        settle(conversation, submission, answer)
        const entry_id = EntryId.make(submission.id)
        emit(conversation, { type: "turn_completed", stop_reason: "stop", entry_id, text: answer })
      })

    const add = (id: number, agent: AgentDocument, title: string | null, requestId: string | null): Conversation => {
      const conversation: Conversation = {
        id: ConversationId.make(id),
        requestId,
        events: [],
        watchers: new Set(),
        submissions: [],
        agent,
        title,
      }
      conversations.set(id, conversation)
      return conversation
    }

    const admit = (conversation: Conversation, id: number, text: string, requestId: string | null) =>
      Effect.gen(function* () {
        const settled = yield* Deferred.make<Settled>()
        const submission: Submission = { id: SubmissionId.make(id), requestId, text, settled, answer: null }
        conversation.submissions.push(submission)
        return submission
      })

    if (options.journal !== undefined && existsSync(options.journal)) {
      for (const line of readFileSync(options.journal, "utf8").split("\n")) {
        if (line === "") continue
        const row = JSON.parse(line)
        if (row.open !== undefined) add(row.open, row.agent, row.title, row.requestId)
        const conversation = conversations.get(row.in ?? 0)
        if (row.submit !== undefined && conversation) yield* admit(conversation, row.submit, row.text, row.requestId)
        for (const one of conversations.values()) {
          const submission = one.submissions.find((candidate) => candidate.id === row.answer)
          if (submission) settle(one, submission, row.text)
        }
        ids = Math.max(ids, row.open ?? 0, row.submit ?? 0)
      }
      for (const conversation of conversations.values()) {
        for (const submission of conversation.submissions) {
          if (submission.answer === null) yield* Effect.forkIn(run(conversation, submission), scope)
        }
      }
    }

    const called = (name: string) => Effect.sync(() => void calls.push(name))

    const names = new Map<string, number>()
    const nameKey = ({ name, namespace, principal = "local" }: NameTarget): string =>
      `${namespace}/${principal}/${name}`
    const named = (name: string, id: number) => ({
      name,
      conversation_id: id as ConversationId,
      title: conversations.get(id)?.title ?? null,
      cwd: null,
      created_at: 0,
      updated_at: 0,
    })

    const sessions: SessionsService = {
      open: (payload) =>
        Effect.gen(function* () {
          yield* called("open")
          if (payload.agent.model === "nobody/none") {
            return yield* new ServiceFailure({ code: "model_not_found", detail: "no such model", reference: "ref1" })
          }
          if (payload.conversationId !== null) {
            const conversation = yield* find(payload.conversationId)
            conversation.agent = { ...conversation.agent, ...payload.agent }
            return stateOf(conversation)
          }
          const same = [...conversations.values()].find(
            (one) => one.requestId !== null && one.requestId === payload.requestId,
          )
          if (same) return stateOf(same)
          const conversation = add(++ids, payload.agent, payload.title, payload.requestId)
          const { agent, title, requestId } = payload
          journal({ open: conversation.id, agent, title, requestId })
          return stateOf(conversation)
        }),
      openNamed: ({ agent, title, ...key }) =>
        Effect.sync(() => {
          calls.push("openNamed")
          const known = names.get(nameKey(key))
          const conversation = known === undefined ? undefined : conversations.get(known)
          if (conversation !== undefined) return { session: stateOf(conversation), created: false }
          const made = add(++ids, agent, title, null)
          names.set(nameKey(key), made.id)
          return { session: stateOf(made), created: true }
        }),
      setName: ({ conversationId, ...key }) =>
        Effect.gen(function* () {
          yield* called("setName")
          if (conversationId === null) names.delete(nameKey(key))
          else names.set(nameKey(key), (yield* find(conversationId)).id)
          return { named: conversationId !== null }
        }),
      findNamed: (key) =>
        Effect.gen(function* () {
          yield* called("findNamed")
          const id = names.get(nameKey(key))
          if (id === undefined) return yield* new NotFound({ what: `session "${key.name}"` })
          return named(key.name, id)
        }),
      listNamed: ({ namespace, principal }) =>
        Effect.sync(() => {
          calls.push("listNamed")
          const start = nameKey({ namespace, name: "", ...(principal === undefined ? {} : { principal }) })
          return [...names]
            .filter(([key]) => key.startsWith(start))
            .map(([key, id]) => named(key.slice(start.length), id))
        }),
      submit: (payload) =>
        Effect.gen(function* () {
          yield* called("submit")
          const conversation = yield* find(payload.conversationId)
          const same = conversation.submissions.find(
            (one) => one.requestId !== null && one.requestId === payload.requestId,
          )
          if (same) return receipt(conversation, same)
          if (payload.whenBusy === "reject" && stateOf(conversation).queued.length > 0) {
            return yield* new Busy({ what: "conversation", detail: "a run is going", retryAfterMs: 250 })
          }
          const text = textOf(payload.content)
          if (text === "defect") return yield* Effect.die(new Error("a defect with a secret"))
          const submission = yield* admit(conversation, ++ids, text, payload.requestId)
          journal({ in: conversation.id, submit: submission.id, text, requestId: payload.requestId })
          if (options.stall === true) return yield* Effect.never
          const answer = receipt(conversation, submission)
          yield* Effect.forkIn(run(conversation, submission), scope)
          return answer
        }),
      write: (payload) =>
        Effect.gen(function* () {
          yield* called("write")
          const conversation = yield* find(payload.conversationId)
          const same = conversation.submissions.find(
            (one) => one.requestId !== null && one.requestId === payload.requestId,
          )
          if (same) return receipt(conversation, same)
          const submission = yield* admit(conversation, ++ids, `${payload.kind}`, payload.requestId)
          journal({ in: conversation.id, submit: submission.id, text: submission.text, requestId: payload.requestId })
          if (options.stall === true) return yield* Effect.never
          journal({ answer: submission.id, text: "" })
          settle(conversation, submission, "")
          return receipt(conversation, submission)
        }),
      reset: (payload) =>
        Effect.suspend(() => {
          calls.push("reset")
          return sessions.write({ ...payload, kind: payload.handoff })
        }),
      withdraw: (payload) =>
        Effect.gen(function* () {
          yield* called("withdraw")
          const conversation = yield* find(payload.conversationId)
          const submission = conversation.submissions.find((one) => one.id === payload.submissionId)
          if (submission === undefined) return yield* new NotFound({ what: `submission ${payload.submissionId}` })
          const detail = `submission ${submission.id} is done`
          if (submission.answer !== null) return yield* new Refused({ rule: "submission_status", detail })
          return { ...receipt(conversation, submission), status: "unanswered", reason: "withdrawn" }
        }),
      fork: (payload) =>
        Effect.gen(function* () {
          yield* called("fork")
          yield* find(payload.conversationId)
          const { agent, title, requestId } = payload
          return yield* sessions.open({ conversationId: null, agent, title, requestId })
        }),
      submission: (payload) =>
        Effect.gen(function* () {
          yield* called("submission")
          const conversation = yield* find(payload.conversationId)
          const submission = conversation.submissions.find(
            (one) => one.id === payload.submissionId || (one.requestId !== null && one.requestId === payload.requestId),
          )
          if (submission === undefined) return yield* new NotFound({ what: "submission" })
          return viewOf(conversation, submission)
        }),
      submissions: (payload) =>
        Effect.map(find(payload.conversationId), (conversation) =>
          conversation.submissions.filter((one) => one.answer === null).map((one) => viewOf(conversation, one)),
        ),
      awaitSubmission: (payload) =>
        Effect.gen(function* () {
          yield* called("awaitSubmission")
          const conversation = yield* find(payload.conversationId)
          const submission = conversation.submissions.find((one) => one.id === payload.submissionId)
          if (submission === undefined) return yield* new NotFound({ what: `submission ${payload.submissionId}` })
          return yield* Deferred.await(submission.settled)
        }),
      watch: (payload) =>
        Stream.unwrap(
          Effect.gen(function* () {
            yield* called("watch")
            const conversation = yield* find(payload.conversationId)
            return Stream.asyncPush<Event>(
              (push) =>
                Effect.acquireRelease(
                  Effect.sync(() => {
                    const watcher = (event: Event | null) => {
                      if (event === null) push.end()
                      else push.single(event)
                    }
                    const { after } = payload
                    if (after !== null && after <= conversation.events.length && conversation.events.length < tail) {
                      for (const event of conversation.events.slice(after)) push.single(event)
                    } else {
                      push.single({
                        type: "snapshot",
                        session: stateOf(conversation),
                        v: 1,
                        conversation_id: conversation.id,
                        turn_id: null,
                        timestamp_ms: 0,
                        seq_no: conversation.events.length,
                      })
                    }
                    conversation.watchers.add(watcher)
                    return watcher
                  }),
                  (watcher) => Effect.sync(() => conversation.watchers.delete(watcher)),
                ),
              { bufferSize: "unbounded" },
            )
          }),
        ),
      cancel: (payload) =>
        Effect.gen(function* () {
          yield* called("cancel")
          const conversation = yield* find(payload.conversationId)
          const cancelled = stateOf(conversation).queued.length > 0
          return { cancelled }
        }),
      state: (payload) => Effect.zipRight(called("state"), Effect.map(find(payload.conversationId), stateOf)),
      configure: (payload) =>
        Effect.gen(function* () {
          yield* called("configure")
          if (payload.agent.mode === "auto") return yield* new Refused({ rule: "policy.mode", detail: "not here" })
          const conversation = yield* find(payload.conversationId)
          conversation.agent = payload.agent
          return stateOf(conversation)
        }),
      list: () =>
        Effect.zipRight(
          called("list"),
          Effect.sync(() =>
            [...conversations.values()].map((conversation) => ({
              conversation_id: conversation.id,
              title: conversation.title,
              created_at: 0,
              updated_at: 0,
              entries: conversation.submissions.length,
              busy: stateOf(conversation).queued.length > 0,
              parked: null,
              forked_from: null,
            })),
          ),
        ),
      transcript: (payload) => Effect.as(find(payload.conversationId), []),
      remove: (payload) =>
        Effect.map(find(payload.conversationId), (conversation) => {
          conversations.delete(conversation.id)
          for (const watcher of [...conversation.watchers]) watcher(null)
          return { removed: true }
        }),
      compact: (payload) =>
        Effect.map(find(payload.conversationId), () => ({
          status: "nothing" as const,
          task_id: null,
          entry_id: null,
          tokens_before: payload.instructions?.length ?? 0,
          tokens_after: null,
        })),
      retry: (payload) => Effect.map(find(payload.conversationId), stateOf),
      effects: () => Effect.succeed([]),
      questions: () => Effect.succeed([]),
      answer: ({ questionId }) => Effect.fail(new NotFound({ what: `question ${questionId}` })),
      settleEffect: ({ taskId }) => Effect.fail(new NotFound({ what: `call ${taskId}` })),
      checkpoints: () => Effect.succeed([]),
      undo: () => Effect.fail(new NotFound({ what: "a checkpoint to undo" })),
      harnesses: Effect.succeed({ harnesses: [], default: null }),
      why: ({ call }) => Effect.fail(new NotFound({ what: `call ${call}` })),
      queues: Effect.succeed([]),
      changeQueue: () => Effect.succeed({ queue: null, job: null, pruned: 0 }),
      tasks: () => Effect.succeed({ tag: "none", tasks: [] }),
      task: ({ taskId }) => Effect.fail(new NotFound({ what: `task ${taskId}` })),
      changeTask: ({ change }) => Effect.succeed({ task: change.task, status: "running", abort: false }),
      addMcpServers: () => Effect.succeed([]),
      mcpServers: () => Effect.succeed([]),
      restartMcpServer: ({ name }) => Effect.fail(new NotFound({ what: `MCP server ${name}` })),
      tree: Effect.sync(() => ({
        name: options.name ?? "node",
        path: "/",
        kind: "supervisor" as const,
        state: "one_for_one",
        mailbox: 0,
        restarts: 0,
        lastCrash: null,
        children: [],
      })),
    }

    const conversationOf = (id: number): Conversation => {
      const conversation = conversations.get(id)
      if (conversation === undefined) throw new Error(`no conversation ${id}`)
      return conversation
    }
    return {
      sessions,
      emit: (id, body) => emit(conversationOf(id), body),
      watchers: (id) => conversationOf(id).watchers.size,
      endWatches: (id) => {
        for (const watcher of [...conversationOf(id).watchers]) watcher(null)
      },
      calls,
    }
  })
