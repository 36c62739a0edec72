/**
 * The sessions service: the contract of `contract.ts` as plain Effects. A node that owns the database serves it from its actors; an
 * attached process serves it over the owner's socket; callers cannot tell the difference.
 */
import type { Effect, Stream } from "effect"
import { Context } from "effect"
import type { CheckpointView, UndoResult } from "../domain/checkpoint.ts"
import type { CompactionResult } from "../domain/compaction-task.ts"
import type { AgentDocument } from "../domain/document.ts"
import type { EffectAnswer, EffectView } from "../domain/effect.ts"
import type { Entry } from "../domain/entry.ts"
import type { Event, SessionState } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"
import type { CallDecisions, HarnessListing } from "../domain/harness-view.ts"
import type { ConversationId, EntryId, SubmissionId, TaskId } from "../domain/ids.ts"
import type { McpServer, McpServerView } from "../domain/mcp.ts"
import type { UserPart } from "../domain/message.ts"
import type { ListedQuestion, QuestionAnswer } from "../domain/question.ts"
import type { QueueChange, QueueChanged, QueueView } from "../domain/queue.ts"
import type { NamedSession, NameSpace } from "../domain/session-name.ts"
import type { WhenBusy } from "../domain/submission.ts"
import type { TaskChange, TaskChanged } from "../domain/task-change.ts"
import type { TaskDetail, TaskList } from "../domain/task-view.ts"
import type { TreeNode } from "../domain/tree.ts"
import type { InputEntry, WriteRequest } from "../domain/write.ts"
import type { Receipt, SessionSummary, Settled, SubmissionView } from "./contract.ts"

/** One conversation on behalf of one principal (`local` when absent). */
export interface Target {
  readonly conversationId: ConversationId
  readonly principal?: string
}

/** A name of a conversation on behalf of one principal (`local` when absent); see `domain/session-name.ts`. */
export interface NameTarget {
  readonly namespace: NameSpace
  readonly name: string
  readonly principal?: string
}

/** A call in doubt and what was said about it. */
export interface EffectSettlement {
  readonly task_id: TaskId
  readonly conversation_id: ConversationId
  readonly answer: EffectAnswer
}

/** A question and the answer that counts. */
export interface AnsweredQuestion {
  readonly question_id: TaskId
  readonly conversation_id: ConversationId
  readonly answer: QuestionAnswer
}

/** Every method but `watch` is a call; `watch` is a stream. */
export interface SessionsService {
  readonly open: (payload: {
    readonly conversationId: ConversationId | null
    readonly agent: AgentDocument
    readonly title: string | null
    readonly requestId: string | null
    readonly principal?: string
  }) => Effect.Effect<SessionState, Failure>
  readonly openNamed: (
    payload: NameTarget & { readonly agent: AgentDocument; readonly title: string | null },
  ) => Effect.Effect<{ readonly session: SessionState; readonly created: boolean }, Failure>
  readonly setName: (
    payload: NameTarget & { readonly conversationId: ConversationId | null },
  ) => Effect.Effect<{ readonly named: boolean }, Failure>
  readonly findNamed: (payload: NameTarget) => Effect.Effect<NamedSession, Failure>
  readonly listNamed: (
    payload: Omit<NameTarget, "name"> & { readonly before?: string | null; readonly limit?: number },
  ) => Effect.Effect<ReadonlyArray<NamedSession>, Failure>
  readonly submit: (
    payload: Target & {
      readonly content: ReadonlyArray<UserPart>
      readonly whenBusy?: WhenBusy
      readonly entry?: InputEntry | undefined
      readonly requestId: string | null
    },
  ) => Effect.Effect<Receipt, Failure>
  readonly write: (
    payload: Target & Partial<WriteRequest> & { readonly requestId: string | null },
  ) => Effect.Effect<Receipt, Failure>
  readonly reset: (
    payload: Target & { readonly handoff: string | null; readonly requestId: string | null },
  ) => Effect.Effect<Receipt, Failure>
  readonly withdraw: (payload: Target & { readonly submissionId: SubmissionId }) => Effect.Effect<Receipt, Failure>
  readonly fork: (
    payload: Target & {
      readonly entryId: EntryId | null
      readonly agent: AgentDocument
      readonly title: string | null
      readonly requestId: string | null
    },
  ) => Effect.Effect<SessionState, Failure>
  readonly submission: (
    payload: Target & { readonly submissionId: SubmissionId | null; readonly requestId: string | null },
  ) => Effect.Effect<SubmissionView, Failure>
  readonly submissions: (payload: Target) => Effect.Effect<ReadonlyArray<SubmissionView>, Failure>
  readonly awaitSubmission: (
    payload: Target & { readonly submissionId: SubmissionId },
  ) => Effect.Effect<Settled, Failure>
  /** `interactive`: the caller can answer questions while it watches. */
  readonly watch: (
    payload: Target & { readonly after: number | null; readonly interactive?: boolean },
  ) => Stream.Stream<Event, Failure>
  /** Everything that runs and is queued; with `submissionId` only the run of that submission, or itself where it is queued. */
  readonly cancel: (
    payload: Target & { readonly submissionId?: SubmissionId | null },
  ) => Effect.Effect<{ readonly cancelled: boolean }, Failure>
  readonly state: (payload: Target) => Effect.Effect<SessionState, Failure>
  readonly configure: (payload: Target & { readonly agent: AgentDocument }) => Effect.Effect<SessionState, Failure>
  readonly list: (payload: {
    readonly limit?: number
    readonly principal?: string
  }) => Effect.Effect<ReadonlyArray<SessionSummary>, Failure>
  readonly transcript: (payload: Target) => Effect.Effect<ReadonlyArray<Entry>, Failure>
  readonly remove: (payload: Target) => Effect.Effect<{ readonly removed: boolean }, Failure>
  readonly compact: (
    payload: Target & { readonly instructions: string | null },
  ) => Effect.Effect<CompactionResult, Failure>
  readonly retry: (payload: Target) => Effect.Effect<SessionState, Failure>
  readonly effects: (payload: {
    readonly running?: boolean
    readonly limit?: number
    readonly principal?: string
  }) => Effect.Effect<ReadonlyArray<EffectView>, Failure>
  readonly settleEffect: (payload: {
    readonly taskId: TaskId
    readonly answer: EffectAnswer
    readonly principal?: string
  }) => Effect.Effect<EffectSettlement, Failure>
  readonly checkpoints: (payload: Target) => Effect.Effect<ReadonlyArray<CheckpointView>, Failure>
  readonly undo: (
    payload: Target & { readonly checkpoint: number | null; readonly force?: boolean },
  ) => Effect.Effect<UndoResult, Failure>
  readonly harnesses: Effect.Effect<HarnessListing, Failure>
  readonly why: (payload: Target & { readonly call: string }) => Effect.Effect<CallDecisions, Failure>
  readonly questions: (payload: {
    readonly conversationId: ConversationId | null
    readonly principal?: string
  }) => Effect.Effect<ReadonlyArray<ListedQuestion>, Failure>
  readonly answer: (payload: {
    readonly questionId: TaskId
    readonly answer: QuestionAnswer
    readonly requestId: string | null
    readonly client: string | null
    readonly principal?: string
  }) => Effect.Effect<AnsweredQuestion, Failure>
  readonly queues: Effect.Effect<ReadonlyArray<QueueView>, Failure>
  readonly changeQueue: (payload: { readonly change: QueueChange }) => Effect.Effect<QueueChanged, Failure>
  /** The open tasks of an application, with `all` those of conversations too. `unless` the tag of an earlier answer: waits for a change, at most 25 s. */
  readonly tasks: (payload: {
    readonly all?: boolean
    readonly unless: string | null
  }) => Effect.Effect<TaskList, Failure>
  readonly task: (payload: { readonly taskId: TaskId }) => Effect.Effect<TaskDetail, Failure>
  readonly changeTask: (payload: { readonly change: TaskChange }) => Effect.Effect<TaskChanged, Failure>
  /** Hands over MCP servers to a conversation; `replace` takes all others of the conversation away. */
  readonly addMcpServers: (
    payload: Target & { readonly servers: ReadonlyArray<McpServer>; readonly replace?: boolean },
  ) => Effect.Effect<ReadonlyArray<McpServerView>, Failure>
  /** Those of a conversation, or (null) of the node. */
  readonly mcpServers: (payload: {
    readonly conversationId: ConversationId | null
    readonly principal?: string
  }) => Effect.Effect<ReadonlyArray<McpServerView>, Failure>
  readonly restartMcpServer: (payload: {
    readonly name: string
    readonly conversationId: ConversationId | null
    readonly principal?: string
  }) => Effect.Effect<McpServerView, Failure>
  readonly tree: Effect.Effect<TreeNode, Failure>
}

export class Sessions extends Context.Tag("super-pi/Sessions")<Sessions, SessionsService>() {}
