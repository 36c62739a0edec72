/**
 * What the conversation machine knows, the events that reach it and the effects that it asks for. All plain data: `decide` is a pure
 * function from (data, event) to a decision; the actor commits the decision's records first and only then adopts the data and performs
 * the actions (rule: only committed state is observable). Long because every event and every action of the machine is named here, in one union each.
 */
import type { CompactionSettings } from "../../../domain/compaction-settings.ts"
import type {
  CompactionFailure,
  CompactionInput,
  CompactionResult,
  CompactionSummary,
} from "../../../domain/compaction-task.ts"
import type { ContextState } from "../../../domain/context.ts"
import type { Conversation } from "../../../domain/conversation.ts"
import type { AgentDocument, LiveDocument, TodoItem, UsageDocument } from "../../../domain/document.ts"
import type { DocumentTail } from "../../../domain/document-definition.ts"
import type { EffectAnswer } from "../../../domain/effect.ts"
import type { Entry } from "../../../domain/entry.ts"
import type { EventBody, MachineState } from "../../../domain/event.ts"
import type { Failure } from "../../../domain/failure.ts"
import type { ConversationId, DocumentId, EntryId, JobId, SubmissionId, TaskId } from "../../../domain/ids.ts"
import type { Json } from "../../../domain/json.ts"
import type { AssistantPart, StopReason, SystemMessage, ToolCallPart, UserPart } from "../../../domain/message.ts"
import type { AskOutcome, QuestionAnswer, QuestionBody, QuestionInput, Remembered } from "../../../domain/question.ts"
import type { SubagentEnd, SubagentInput } from "../../../domain/subagent.ts"
import type { Submission, WhenBusy } from "../../../domain/submission.ts"
import type { Task } from "../../../domain/task.ts"
import type { TrailStep } from "../../../domain/trail.ts"
import type { Usage } from "../../../domain/usage.ts"
import type { EntryDraft, InputEntry } from "../../../domain/write.ts"
import type { HookName } from "../../../harness/plugin.ts"
import type { ModelError } from "../../../models/model.ts"
import type { Commit, Unstamped } from "../../../storage/store.ts"
import type { Reconciliation, ToolResult } from "../../../tools/tool.ts"

/** A task row without its `seq`. */
export type TaskRow = Unstamped<Task>
export type SubmissionRow = Unstamped<Submission>

/**
 * One call of the current batch. `pending` calls have no effect yet, nor have `asking` ones, which wait for a person's answer; `running` ones
 * may have; of a `reconciling` one, which an earlier process began, its tool finds out.
 */
export interface CallSlot {
  readonly task: TaskRow
  readonly call: ToolCallPart
  /** Final, decoded arguments: the committed intent. */
  readonly args: Json
  readonly replay: "safe" | "unsafe"
  /** The durable id of its effect, given to the tool as idempotency key. */
  readonly effect: string
  /** Whether it is in doubt when it ends without a result of its own. */
  readonly whenInterrupted: "settled" | "inDoubt"
  readonly status: "asking" | "pending" | "running" | "reconciling" | "done"
  /** Tail of the output streamed so far. */
  readonly output: string
  readonly startedAt: number
  /** What plugins said of it before it ran; absent: nothing. */
  readonly trail?: ReadonlyArray<TrailStep>
}

/** A response that the model finished, before its commit. */
export interface Finished {
  readonly content: ReadonlyArray<AssistantPart>
  readonly stopReason: StopReason
  readonly usage: Usage
}

/** The run in progress: its current generation and what hangs on it. */
export interface Run {
  readonly generation: TaskRow
  /** The inputs that this run answers. */
  readonly submissions: ReadonlyArray<SubmissionRow>
  /** `provider/model` of the current request, "" before it is resolved. */
  readonly model: string
  /** Requests of this turn so far, counting the current one from 1. */
  readonly attempt: number
  /** Which job's messages count: raised whenever a new request or batch starts. */
  readonly token: number
  readonly partial: { readonly text: string; readonly thinking: string }
  readonly finished: Finished | null
  readonly calls: ReadonlyArray<CallSlot>
  /** How many calls of the batch may run at once; 1 for a sequential batch. */
  readonly parallel: number
  readonly retry: { readonly attempt: number; readonly at: number; readonly reason: string } | null
  /** `pi.live` holds something of this turn. */
  readonly flushed: boolean
  /** Something was staged since the last flush, and a flush is due. */
  readonly flushDue: boolean
  readonly cancelling: boolean
  /** Tokens of the model's context window, null where nobody knows. */
  readonly window: number | null
  /** Compactions that the request of this turn waited for. */
  readonly waits: number
  /** The service found the context of this turn too long once. */
  readonly overflowed: boolean
  /** The plugins know that the calls of this turn have ended. */
  readonly told?: boolean
  /** Subagents that this turn waits for. */
  readonly children: ReadonlyArray<Child>
}

/** A compaction that is not over: it is being made, sleeps before a retry, or is `ready` and waits for a turn boundary. */
export interface Compaction {
  readonly task: TaskRow
  readonly input: CompactionInput
  /** Requests so far, counting the current one from 1. */
  readonly attempt: number
  readonly retry: { readonly attempt: number; readonly at: number; readonly reason: string } | null
  readonly ready: CompactionSummary | null
  readonly cancelling: boolean
  /** Who waits for its end. */
  readonly replies: ReadonlyArray<Reply<CompactionResult>>
}

/** A subagent that has not ended. `task` is its row: pending while its job is queued, running from the start of its job. */
export interface Child {
  readonly task: TaskRow
  readonly input: SubagentInput
  /** Which job works on it. */
  readonly job: number
}

/** What the job of a subagent is to do, and how much of its time is left, in ms. */
export interface ChildOrder {
  readonly input: SubagentInput
  readonly leftMs: number
}

/** An open question. `task` is its row, whose owner asks. */
export interface Question {
  readonly task: TaskRow
  readonly input: QuestionInput
  /** Who waits for its end: none where a call waits, or where who asked died and has not asked again. */
  readonly replies: ReadonlyArray<Reply<AskOutcome>>
}

/** A run whose task crashed its process too often. It waits for `retry` or `cancel`. */
export interface Parked {
  readonly generation: TaskRow
  readonly calls: ReadonlyArray<TaskRow>
  readonly submissions: ReadonlyArray<SubmissionRow>
  readonly reason: string
}

export interface Data {
  readonly state: MachineState
  readonly conversation: Unstamped<Conversation>
  readonly agent: AgentDocument
  readonly documents: { readonly [kind: string]: DocumentId }
  /** The rewindable documents that this life of the actor wrote, as they are stored. */
  readonly written: { readonly [kind: string]: { readonly value: Json; readonly tail: DocumentTail } }
  readonly usage: UsageDocument
  readonly context: ContextState
  readonly entryCount: number
  /** Queued submissions, oldest first. */
  readonly queue: ReadonlyArray<SubmissionRow>
  readonly run: Run | null
  readonly parked: Parked | null
  /** Callers waiting for a cancel to finish. */
  readonly cancels: ReadonlyArray<Reply<{ readonly cancelled: boolean }>>
  readonly compactions: ReadonlyArray<Compaction>
  /** The newest compaction that failed, until one succeeds. */
  readonly compactionFailure: CompactionFailure | null
  /** Open questions, oldest first. */
  readonly questions: ReadonlyArray<Question>
  /** The todo list as watchers were told; absent: there was none. */
  readonly plan?: ReadonlyArray<TodoItem>
  /** What plugins still have to do after runs (after-run.ts); absent: nothing. */
  readonly afterRuns?: ReadonlyArray<TaskRow>
  /** Queued inputs that plugins read now, and commands of those that they have read (input.ts). */
  readonly reading?: ReadonlyArray<SubmissionId>
  readonly inputCalls?: ReadonlyArray<InputCall>
  /** The token of the newest run that ended in this life of the actor: the next one's are higher. */
  readonly lastToken?: number
}

/** A command of a queued input: it waits for a person (`asking`) or runs. One whose input was withdrawn is being stopped (`abortRequested`). */
export interface InputCall {
  readonly submission: SubmissionId
  readonly slot: CallSlot
}

/** A call of a response whose calls have all ended. */
export interface EndedCall {
  readonly id: string
  readonly name: string
  readonly args: Json
  readonly isError: boolean
}

/** Where an answer goes: opaque to the machine. `A` only marks what is expected. */
export interface Reply<in A> {
  readonly succeed: (value: A) => void
  readonly fail: (failure: Failure) => void
}

/** That a person has to allow a call first. */
export interface AskFirst {
  readonly title: string
  /** Why it is asked, one sentence. */
  readonly reason: string
  /** What "always" keeps in the session. Absent: "always" counts once. */
  readonly remember?: Remembered
  /** Default: the policy's. */
  readonly timeoutMs?: number
}

/** What happened to a call when it was prepared: its tool, its arguments and the policy were checked. */
export type Verdict =
  | {
      readonly type: "run"
      readonly args: Json
      readonly replay: "safe" | "unsafe"
      /** Default `settled`. */
      readonly whenInterrupted?: "settled" | "inDoubt"
      readonly execution: "parallel" | "sequential"
      /** The call waits until a person allows it; where nobody can be asked, it is refused. */
      readonly ask?: AskFirst
      readonly trail?: ReadonlyArray<TrailStep>
    }
  | {
      readonly type: "refuse"
      readonly reason: string
      /** It would have been asked, and nobody could be. */
      readonly question?: "nobody"
      readonly trail?: ReadonlyArray<TrailStep>
    }

/** Why a job ended without a message of its own. */
export type JobEnd =
  | { readonly type: "stopped" }
  | { readonly type: "crashed"; readonly reference: string; readonly message: string }

/** What was stored of a conversation when its actor starts. */
export interface Stored {
  readonly tasks: ReadonlyArray<Task>
  readonly submissions: ReadonlyArray<Submission>
  readonly live: LiveDocument | null
  /** Results of the open batch that are committed already, by call id. */
  readonly results: ReadonlySet<string>
  /** The assistant entry of the open batch. */
  readonly batch: Entry | null
}

export type MachineEvent =
  | {
      readonly type: "recover"
      readonly stored: Stored
      readonly replayOf: (tool: string) => "safe" | "unsafe"
      /** Whether a tool can find out what became of a call. */
      readonly reconciles: (tool: string) => boolean
    }
  | {
      readonly type: "submit"
      readonly content: ReadonlyArray<UserPart>
      readonly whenBusy: WhenBusy
      readonly requestId: string | null
      /** How it shows in the transcript, where not as `pi.user`. */
      readonly entry?: InputEntry
      /** The `traceparent` that it belongs to; absent where nobody keeps spans. */
      readonly trace?: string
      readonly reply: Reply<SubmissionRow>
    }
  /** Appends an entry without asking the model; what it names was checked to be visible. */
  | {
      readonly type: "write"
      readonly entry: EntryDraft
      readonly requestId: string | null
      readonly reply: Reply<SubmissionRow>
    }
  | { readonly type: "withdraw"; readonly submission: SubmissionId; readonly reply: Reply<SubmissionRow> }
  /** `submission`: only the run that it is part of; where it is queued, it is withdrawn. Absent: whatever runs and is queued. */
  | {
      readonly type: "cancel"
      readonly submission?: SubmissionId
      readonly reply: Reply<{ readonly cancelled: boolean }>
    }
  | { readonly type: "configure"; readonly agent: AgentDocument; readonly reply: Reply<void> }
  | { readonly type: "retry"; readonly reply: Reply<void> }
  | {
      readonly type: "compact"
      readonly instructions: string | null
      readonly target: { readonly model: string; readonly window: number | null }
      readonly reply: Reply<CompactionResult>
    }
  | {
      readonly type: "compacted"
      readonly task: TaskId
      readonly summary: CompactionSummary
      /** The `provider/model` that wrote it and what that took; null where no model was asked. */
      readonly model: string
      readonly usage: Usage | null
    }
  | { readonly type: "compactionFailed"; readonly task: TaskId; readonly error: ModelError }
  /** A plugin does not want it. */
  | { readonly type: "compactionDeclined"; readonly task: TaskId; readonly reason: string }
  | {
      readonly type: "prepared"
      readonly token: number
      readonly model: string
      readonly window: number | null
      readonly system: SystemMessage | null
    }
  | { readonly type: "text"; readonly token: number; readonly delta: string }
  | { readonly type: "thinking"; readonly token: number; readonly delta: string }
  | {
      readonly type: "callDelta"
      readonly token: number
      readonly callId: string
      readonly name: string
      readonly delta: string
      readonly arguments: Json
    }
  | { readonly type: "responded"; readonly token: number; readonly finished: Finished }
  | { readonly type: "modelFailed"; readonly token: number; readonly error: ModelError }
  | { readonly type: "callsPrepared"; readonly token: number; readonly verdicts: ReadonlyArray<Verdict> }
  | { readonly type: "toolOutput"; readonly task: TaskId; readonly chunk: string }
  | {
      readonly type: "toolEnded"
      readonly task: TaskId
      readonly result: ToolResult
      /** What plugins said of it while and after it ran. */
      readonly trail?: ReadonlyArray<TrailStep>
    }
  | { readonly type: "reconciled"; readonly task: TaskId; readonly found: Reconciliation }
  /** Somebody says what became of a call in doubt; `task` is its row. */
  | {
      readonly type: "settleEffect"
      readonly task: TaskRow
      readonly answer: EffectAnswer
      readonly reply: Reply<void>
    }
  /** Somebody answers an open question; the answer was found to fit it. */
  | {
      readonly type: "answer"
      readonly question: TaskId
      readonly answer: QuestionAnswer
      readonly by: string
      readonly requestId: string | null
      readonly reply: Reply<void>
    }
  /** A running call, or the turn (`owner` null), asks a person. The same `key` of one owner is the same question. */
  | {
      readonly type: "ask"
      readonly owner: TaskId | null
      readonly key: string
      readonly body: QuestionBody
      readonly timeoutMs: number | null
      readonly reply: Reply<AskOutcome>
    }
  /** The job of a subagent begins: answered with what is to be done, or null where there is nothing to do any more. */
  | {
      readonly type: "childBegun"
      readonly task: TaskId
      readonly job: number
      readonly reply: Reply<ChildOrder | null>
    }
  | {
      readonly type: "childEnded"
      readonly task: TaskId
      readonly end: SubagentEnd
      readonly reply: Reply<void>
    }
  /** What is queued is to run now: a subagent begins with what its conversation was created with. */
  | { readonly type: "proceed"; readonly reply: Reply<void> }
  /** The node found that what was asked of the model so far exhausts the budget. */
  | { readonly type: "overBudget"; readonly token: number; readonly detail: string }
  /** The plugins were told that the calls of the turn have ended. */
  | { readonly type: "toldEnded"; readonly token: number }
  /** The plugins said whether the answer is final: null, or what the run goes on with. */
  | {
      readonly type: "yielded"
      readonly token: number
      readonly next: { readonly content: ReadonlyArray<UserPart>; readonly plugins: ReadonlyArray<string> } | null
    }
  /** The plugins did what they do after a run. */
  | { readonly type: "afterRunEnded"; readonly task: TaskId }
  /** The plugins read a queued input; each command was judged as a call of `bash`. `settles`: it asks no model, and this is told. */
  | {
      readonly type: "inputRead"
      readonly submission: SubmissionId
      readonly content: ReadonlyArray<UserPart>
      readonly agent: AgentDocument | null
      readonly settles?: string
      readonly commands: ReadonlyArray<{ readonly verdict: Verdict; readonly maxBytes: number }>
    }
  | { readonly type: "jobEnded"; readonly job: Job; readonly end: JobEnd }
  | { readonly type: "timer"; readonly timer: TimerName }
  | { readonly type: "settled" }

/**
 * Work outside the machine, each a child actor: preparing a request, the model's stream, preparing calls, one tool call, finding out what
 * became of one.
 */
export type Job =
  | { readonly type: "prepare"; readonly token: number }
  | { readonly type: "model"; readonly token: number }
  | { readonly type: "calls"; readonly token: number }
  | { readonly type: "tool"; readonly task: TaskId }
  | { readonly type: "reconcile"; readonly task: TaskId }
  | { readonly type: "compaction"; readonly task: TaskId }
  /** Hooks that the run waits for, those of a run that ended, and those that read a queued input. */
  | { readonly type: "hook"; readonly token: number }
  | { readonly type: "afterRun"; readonly task: TaskId }
  | { readonly type: "input"; readonly submission: SubmissionId }

export type TimerName = "backoff" | "flush" | "compaction" | "question" | "children"

export type Action =
  /** `turn` is the generation that the event is about, null outside a turn. */
  | { readonly type: "publish"; readonly event: EventBody; readonly turn: TaskId | null }
  | { readonly type: "succeed"; readonly reply: Reply<never>; readonly value: unknown }
  | { readonly type: "fail"; readonly reply: Reply<never>; readonly failure: Failure }
  | { readonly type: "prepare"; readonly token: number }
  | { readonly type: "request"; readonly token: number; readonly model: string; readonly generation: TaskId }
  | { readonly type: "prepareCalls"; readonly token: number; readonly calls: ReadonlyArray<ToolCallPart> }
  | { readonly type: "runTool"; readonly slot: CallSlot }
  | { readonly type: "reconcile"; readonly slot: CallSlot }
  | {
      readonly type: "hook"
      readonly token: number
      readonly hook:
        | { readonly type: "afterTools"; readonly calls: ReadonlyArray<EndedCall> }
        | { readonly type: "onYield"; readonly entry: EntryId; readonly text: string }
    }
  | { readonly type: "afterRun"; readonly task: TaskRow }
  | { readonly type: "readInput"; readonly row: SubmissionRow }
  /** Stops every job of the run; `spare` are commands of inputs, which are not part of it. */
  | { readonly type: "stopJobs"; readonly spare: ReadonlyArray<TaskId> }
  /** Stops these calls: commands of inputs that were withdrawn. */
  | { readonly type: "stopCalls"; readonly tasks: ReadonlyArray<TaskId> }
  | { readonly type: "compact"; readonly compaction: Compaction }
  | { readonly type: "stopCompaction"; readonly task: TaskId }
  /** A run waits for it now: it does not wait for others. */
  | { readonly type: "hurryCompaction"; readonly task: TaskId }
  /** Cancels what these subagents do; each ends with a `childEnded`. */
  | { readonly type: "stopChildren"; readonly children: ReadonlyArray<Child> }
  /** Looks whether one of these has ended without word. */
  | { readonly type: "checkChildren"; readonly children: ReadonlyArray<Child> }
  | { readonly type: "timer"; readonly timer: TimerName; readonly ms: number }
  | { readonly type: "clearTimer"; readonly timer: TimerName }
  | { readonly type: "settle"; readonly submission: SubmissionRow }
  /** Sends the machine this event next. */
  | { readonly type: "self"; readonly event: MachineEvent }

/** Either the event waits for the next state, or: commit first, then adopt `data`, then perform `actions` in order. */
export type Decision =
  | { readonly type: "postpone" }
  | {
      readonly type: "go"
      readonly data: Data
      readonly commit: Commit | null
      readonly actions: ReadonlyArray<Action>
    }

/** Fresh ids, drawn in increasing order. */
export interface IdSource {
  readonly entry: () => EntryId
  readonly task: () => TaskId
  readonly submission: () => SubmissionId
  readonly document: () => DocumentId
  /** For the results that create conversations (`ids.ts`). */
  readonly conversation: () => ConversationId
  /** For the events that put a job into a queue (`ids.ts`). */
  readonly job: () => JobId
}

/** What a decision may know beside its data. */
export interface Env {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly ids: IdSource
  readonly node: string
  /** Fencing token under which this node takes tasks. */
  readonly fence: number
  /** Draws a number in [0, 1) for the jitter of a backoff. */
  readonly random: () => number
  readonly policy: Policy
  /** Whether a client is connected that can answer questions. Default false. */
  readonly answerable?: boolean
  /** The hooks that the conversation's plugins have. Default none. */
  readonly hooks?: ReadonlySet<HookName>
  /** The `traceparent` of the turn, to which its subagents belong. Default none. */
  readonly trace?: string | undefined
}

export interface Policy {
  /** Requests of one turn beyond the first that a transient failure may cost. Default 6. */
  readonly maxRetries: number
  /** First backoff, doubled per attempt up to `backoffMaxMs`. Defaults 1,000 and 60,000 ms. */
  readonly backoffBaseMs: number
  readonly backoffMaxMs: number
  /** How often staged partials reach the database at most. Default 1,000 ms. */
  readonly flushMs: number
  /** Calls of one batch that run at once. Default 8. */
  readonly parallelCalls: number
  /** Turns of one run, after which it ends with an error. Default 200. */
  readonly maxTurns: number
  readonly compaction: CompactionSettings
  /** How often a parent looks whether a subagent ended without word. Default 5,000 ms. */
  readonly awaitPollMs?: number
  /** How long a question stays open. Default 120,000 ms. */
  readonly questionTimeoutMs?: number
}

export const defaultPolicy: Policy = {
  maxRetries: 6,
  backoffBaseMs: 1_000,
  backoffMaxMs: 60_000,
  flushMs: 1_000,
  parallelCalls: 8,
  maxTurns: 200,
  compaction: {},
}
