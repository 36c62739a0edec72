/**
 * The sessions service of the node that owns the database: the contract's messages, brought to conversation actors.
 */
import { Effect, Option, Schedule } from "effect"
import type { Settled } from "../actors/contract.ts"
import { noConversation, orStorageFailure, storageFailure } from "../actors/conversation/failures.ts"
import type { EventHub } from "../actors/conversation/hub.ts"
import type { SubmissionRow } from "../actors/conversation/machine/data.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import { receiptOf } from "../actors/conversation/settle.ts"
import {
  type ActorDown,
  type ActorSystemService,
  type AskTimeout,
  ask,
  type ReplyTo,
  tell,
} from "../actors/kernel/index.ts"
import type { McpServersService } from "../actors/mcp/servers.ts"
import type { QueuesService } from "../actors/queue/queues.ts"
import { sessionSummary } from "../actors/session-summary.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import type { TasksService } from "../actors/task/service.ts"
import type { CompactionResult } from "../domain/compaction-task.ts"
import type { AgentDocument } from "../domain/document.ts"
import type { SessionState } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"
import { Busy, InvalidRequest, Refused } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { isWorkflow } from "../domain/task-rules.ts"
import type { HarnessesService } from "../harness/registry.ts"
import type { ModelsService } from "../models/model.ts"
import type { StoreService } from "../storage/store.ts"
import type { Conversations } from "./conversations.ts"
import { checkDirectory, checkWorkspace } from "./directory.ts"
import { makeEffects } from "./effects.ts"
import { makeQuestions } from "./questions.ts"
import { makeOpening } from "./sessions-create.ts"
import { makeFork } from "./sessions-fork.ts"
import { checkHarness, makeHarnessReads } from "./sessions-harnesses.ts"
import { makeMcpCalls } from "./sessions-mcp.ts"
import { makeNames } from "./sessions-names.ts"
import { makeUndo } from "./sessions-undo.ts"
import { checkInputEntry, makeWrites } from "./sessions-write.ts"
import { changeTask } from "./task-change.ts"
import { makeTaskReads } from "./task-reads.ts"
import { watchLives } from "./watch-lives.ts"

/** How long a call waits for a conversation that is slow to answer, in ms. */
const askTimeoutMs = 30_000

/** Conversations whose principal is remembered. */
const principalsKept = 10_000

/** A call that met an actor which was just leaving memory, or restarting, goes to its successor. */
const successor = Schedule.exponential("10 millis", 2).pipe(Schedule.intersect(Schedule.recurs(8)))

export interface SessionsParts {
  readonly store: StoreService
  readonly models: ModelsService
  readonly system: ActorSystemService
  readonly conversations: Conversations
  readonly queues: QueuesService
  readonly tasks: TasksService
  /** Default: the node has none. */
  readonly harnesses?: HarnessesService | null
  /** Default: the node uses no MCP servers. */
  readonly mcp?: McpServersService | null
  /** The state of a conversation that was just created, wherever it is to work. Default: here. */
  readonly stateOf?: (target: Target) => Effect.Effect<SessionState, Failure>
}

export const makeSessions = (parts: SessionsParts): SessionsService => {
  const { conversations, harnesses = null, models, queues, store, system, tasks } = parts

  /** Whose conversation it is, as far as it was asked: a principal never changes, and one that is gone fails to start. */
  const principals = new Map<ConversationId, string>()

  const principalOf = (id: ConversationId): Effect.Effect<string | null, Failure> =>
    Effect.map(orStorageFailure(store.conversation(id)), (row) => {
      if (row === null) return null
      if (principals.size >= principalsKept) principals.clear()
      principals.set(id, row.principal)
      return row.principal
    })

  /** Fails with `NotFound` for a conversation that is not there or not the caller's. */
  const allowed = ({ conversationId, principal = "local" }: Target): Effect.Effect<void, Failure> => {
    const isOwn = (owner: string | null): Effect.Effect<void, Failure> =>
      owner === principal ? Effect.void : Effect.fail(noConversation(conversationId))
    const known = principals.get(conversationId)
    return known === undefined ? Effect.flatMap(principalOf(conversationId), isOwn) : isOwn(known)
  }

  const request = <A>(
    target: Target,
    message: (reply: ReplyTo<A, Failure>) => ConversationMessage,
    timeoutMs = askTimeoutMs,
  ): Effect.Effect<A, Failure> => {
    const once = Effect.flatMap(conversations.get(target.conversationId), (ref) =>
      ask<ConversationMessage, A, Failure>(ref, message, { timeoutMs }),
    )
    const asked = Effect.catchAll(once, (error): Effect.Effect<A, Failure> => {
      if (error._tag === "ActorDown") return later(once, target)
      return error._tag === "AskTimeout" ? notAnswering(target) : Effect.fail(error)
    })
    return Effect.zipRight(allowed(target), asked)
  }

  const state = (target: Target) => request<SessionState>(target, (reply) => ({ type: "state", reply }))
  const created = parts.stateOf ?? state

  const checkAgent = (agent: AgentDocument): Effect.Effect<void, Failure> =>
    Effect.gen(function* () {
      if (agent.subagent !== undefined) {
        const actual = JSON.stringify(agent.subagent)
        return yield* new InvalidRequest({ path: "agent.subagent", expected: "nothing: the engine writes it", actual })
      }
      if (agent.cwd !== undefined) yield* checkDirectory("agent.cwd", agent.cwd)
      yield* checkWorkspace(agent.workspace)
      yield* checkHarness(harnesses, agent)
      if (agent.model === undefined) return
      yield* models.resolve(agent.model).pipe(
        Effect.catchTag("ProviderNotConfigured", (error) =>
          Effect.fail(new Refused({ rule: "provider_not_configured", detail: error.message })),
        ),
        Effect.catchTag("ModelNotFound", (error) =>
          Effect.fail(
            new InvalidRequest({
              path: "agent.model",
              expected: `the name of a model that some provider serves (${error.known.slice(0, 5).join(", ")})`,
              actual: JSON.stringify(error.model),
            }),
          ),
        ),
      )
    })

  const configure: SessionsService["configure"] = ({ agent, ...target }) =>
    Effect.zipRight(
      checkAgent(agent),
      Effect.zipRight(
        request<void>(target, (reply) => ({ type: "configure", agent, reply })),
        state(target),
      ),
    )

  const opening = makeOpening({ store, harnesses })

  const awaitSubmission: SessionsService["awaitSubmission"] = ({ submissionId, ...target }) =>
    request<Settled>(target, (reply) => ({ type: "await", submission: submissionId, reply }), Number.POSITIVE_INFINITY)

  const watch: SessionsService["watch"] = ({ after, interactive = false, ...target }) => {
    const hub = request<EventHub>(target, (reply) => ({ type: "watch", reply }))
    return watchLives({ hub, after, interactive })
  }

  /** Whether the conversation has work: asked of its actor where it is in memory, of the store otherwise (it need not be able to start). */
  const works = (target: Target): Effect.Effect<boolean, Failure> =>
    Effect.flatMap(conversations.peek(target.conversationId), (ref) =>
      Option.isSome(ref)
        ? Effect.zipWith(
            state(target),
            orStorageFailure(store.openSubmissions(target.conversationId)),
            (now, open) =>
              now.state !== "idle" ||
              now.turn_id !== null ||
              now.compactions.length > 0 ||
              open.some((row) => row.kind === "input"),
          )
        : Effect.map(orStorageFailure(store.openTasks(target.conversationId)), (tasks) => tasks.length > 0),
    )

  const remove: SessionsService["remove"] = (target) =>
    Effect.gen(function* () {
      yield* allowed(target)
      // A workflow of the application may work for a conversation that is idle itself.
      const open = yield* orStorageFailure(store.openTasks(target.conversationId))
      if (open.some(isWorkflow) || (yield* works(target))) {
        return yield* new Busy({
          what: "conversation",
          detail: "cancel its work before removing it",
          retryAfterMs: null,
        })
      }
      yield* store
        .commit({ removeConversations: [target.conversationId] })
        .pipe(
          Effect.catchAll((error) =>
            error._tag === "Conflict"
              ? Effect.fail<Failure>(new Refused({ rule: "forks", detail: error.message }))
              : Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure)),
          ),
        )
      principals.delete(target.conversationId)
      // Last, so that a watcher who comes back at once finds nothing to start again.
      const ref = yield* conversations.peek(target.conversationId)
      if (Option.isSome(ref)) yield* tell(ref.value, { type: "leave" })
      return { removed: true }
    })

  return {
    open: (payload) => {
      const { agent, conversationId, principal } = payload
      if (conversationId === null) {
        return Effect.flatMap(Effect.zipRight(checkAgent(agent), opening(payload)), (id) =>
          created({ conversationId: id, ...(principal === undefined ? {} : { principal }) }),
        )
      }
      const target = { conversationId, ...(principal === undefined ? {} : { principal }) }
      return Object.keys(agent).length === 0 ? state(target) : configure({ ...target, agent })
    },
    ...makeNames({ store, harnesses, allowed, checkAgent, state: created }),
    submit: ({ content, entry, requestId, whenBusy, ...target }) =>
      content.length === 0
        ? Effect.fail(new InvalidRequest({ path: "content", expected: "at least one part", actual: "none" }))
        : Effect.zipRight(
            checkInputEntry(entry),
            Effect.map(
              request<SubmissionRow>(target, (reply) => ({
                type: "submit",
                content,
                whenBusy: whenBusy ?? "followUp",
                requestId,
                ...(entry === undefined ? {} : { entry }),
                reply,
              })),
              receiptOf,
            ),
          ),
    ...makeWrites({ store, request, allowed }),
    fork: makeFork({ store, allowed, checkAgent, state: created }),
    awaitSubmission,
    watch,
    cancel: ({ submissionId = null, ...target }) =>
      request<{ readonly cancelled: boolean }>(
        target,
        (reply) =>
          submissionId === null ? { type: "cancel", reply } : { type: "cancel", submission: submissionId, reply },
        Number.POSITIVE_INFINITY,
      ),
    state,
    configure,
    list: ({ limit, principal }) =>
      Effect.map(
        orStorageFailure(store.conversations({ principal: principal ?? "local", limit: limit ?? 100 })),
        (rows) => rows.map(sessionSummary),
      ),
    transcript: (target) =>
      Effect.zipRight(allowed(target), orStorageFailure(store.visibleEntries(target.conversationId))),
    remove,
    compact: ({ instructions, ...target }) => {
      const wish = instructions === null || instructions.trim() === "" ? null : instructions.trim()
      return request<CompactionResult>(
        target,
        (reply) => ({ type: "compactNow", instructions: wish, reply }),
        Number.POSITIVE_INFINITY,
      )
    },
    retry: (target) =>
      Effect.zipRight(
        request<void>(target, (reply) => ({ type: "retry", reply })),
        state(target),
      ),
    ...makeEffects({ store, principalOf, request }),
    ...makeUndo({ store, allowed, works, request }),
    ...makeHarnessReads({ store, harnesses, allowed }),
    ...makeMcpCalls({ store, mcp: parts.mcp ?? null, allowed, state }),
    ...makeQuestions({ store, principalOf, allowed, request }),
    queues: queues.list,
    changeQueue: ({ change }) => queues.change(change),
    ...makeTaskReads({ store, tasks, clustered: parts.stateOf !== undefined }),
    changeTask: ({ change }) => changeTask(tasks, change),
    tree: system.tree(),
  }
}

/** The same call to the actor's successor. */
const later = <A>(
  once: Effect.Effect<A, Failure | ActorDown | AskTimeout>,
  target: Target,
): Effect.Effect<A, Failure> =>
  once.pipe(
    Effect.retry({ schedule: successor, while: (error) => error._tag === "ActorDown" }),
    Effect.catchTags({ ActorDown: () => notAnswering(target), AskTimeout: () => notAnswering(target) }),
  )

const notAnswering = (target: Target): Effect.Effect<never, Failure> =>
  Effect.fail(
    new Busy({
      what: "conversation",
      detail: `conversation ${target.conversationId} does not answer right now`,
      retryAfterMs: 1_000,
    }),
  )
