/**
 * The storage port: one contract, many engines (SQLite, memory, PostgreSQL). Invariants:
 * 1. A commit is atomic over every row that it writes, and durable before it answers.
 * 2. Commits get strictly increasing `seq`; every row carries the `seq` of the commit that wrote it last.
 * 3. A commit under a stale fencing token writes nothing and fails with `Fenced`.
 * 4. A failed commit writes nothing at all, whatever else shared its transaction.
 */
import { Context, Effect } from "effect"
import type { Conversation } from "../domain/conversation.ts"
import type { DocumentRecord } from "../domain/document.ts"
import type { DocumentWrite } from "../domain/document-write.ts"
import type { Entry } from "../domain/entry.ts"
import type { ConversationId, DocumentId, EntryId, JobId, Seq, SubmissionId, TaskId } from "../domain/ids.ts"
import type { Job } from "../domain/job.ts"
import type { Submission } from "../domain/submission.ts"
import type { Task } from "../domain/task.ts"
import type { ArtifactReads, ArtifactRemoval, ArtifactWrite } from "./artifact-port.ts"
import type { DocumentReads } from "./document-port.ts"
import type { CommitError, ReadError } from "./errors.ts"
import type { JobClaim, JobInsert, JobPruning, JobReads, JobUpdate } from "./job-port.ts"
import type { NameChange, NameReads } from "./name-port.ts"

/** A row before the commit stamps its `seq`. */
export type Unstamped<Row> = Omit<Row, "seq">

export type { DocumentWrite }

/** Changes of an existing conversation. Absent fields stay. */
export interface ConversationUpdate {
  readonly id: ConversationId
  readonly title?: string | null
  readonly updatedAt: number
}

/**
 * The store as the machine of one conversation uses it: the conversation is taken for it now, and what it commits carries the token.
 */
export const takenBy = (store: StoreService, conversation: ConversationId): Effect.Effect<StoreService, CommitError> =>
  Effect.map(store.takeConversation(conversation), (token) => {
    if (token === null) return store
    const under = { conversation, token }
    return { ...store, epoch: token, commit: (commit) => store.commit({ under, ...commit }) }
  })

/** The right to write for one conversation: a commit under a token that is not its newest any more fails with `Fenced`. */
export interface ConversationToken {
  readonly conversation: ConversationId
  readonly token: number
}

/** One atomic write. Ids come from {@link StoreService.mint}; rows of tasks and submissions are whole and replace what was there. */
export interface Commit {
  /** Given by the machine of a conversation where several nodes write; see {@link StoreService.takeConversation}. */
  readonly under?: ConversationToken
  readonly conversations?: ReadonlyArray<Unstamped<Conversation>>
  readonly conversationUpdates?: ReadonlyArray<ConversationUpdate>
  readonly entries?: ReadonlyArray<Unstamped<Entry>>
  readonly tasks?: ReadonlyArray<Unstamped<Task>>
  readonly submissions?: ReadonlyArray<Unstamped<Submission>>
  readonly documents?: ReadonlyArray<DocumentWrite>
  /** New jobs; then transitions of jobs, claims and pruning, in this order. */
  readonly jobs?: ReadonlyArray<JobInsert>
  readonly jobUpdates?: ReadonlyArray<JobUpdate>
  readonly jobClaims?: ReadonlyArray<JobClaim>
  readonly pruneJobs?: JobPruning
  readonly artifacts?: ReadonlyArray<ArtifactWrite>
  readonly removeArtifacts?: ReadonlyArray<ArtifactRemoval>
  /** Changes of names, in this order. */
  readonly names?: ReadonlyArray<NameChange>
  /** Deletes conversations with all that belongs to them (`session rm`); refused as `Conflict` while a fork needs one. */
  readonly removeConversations?: ReadonlyArray<ConversationId>
}

export interface IdsByKind {
  readonly conversation: ConversationId
  readonly entry: EntryId
  readonly task: TaskId
  readonly submission: SubmissionId
  readonly document: DocumentId
  readonly job: JobId
}

/** One line of a listing. */
export interface ConversationSummary {
  readonly conversation: Conversation
  readonly entries: number
  /** Some task of it is not terminal. */
  readonly busy: boolean
  /** Why a task of it is parked, or null. */
  readonly parked: string | null
}

export interface StoreReads extends JobReads, ArtifactReads, DocumentReads, NameReads {
  readonly conversation: (id: ConversationId) => Effect.Effect<Conversation | null, ReadError>
  /** Newest `updatedAt` first; without those owned by a task. `principal` null lists everyone's. */
  readonly conversations: (options: {
    readonly principal: string | null
    readonly limit: number
    readonly before?: ConversationId
  }) => Effect.Effect<ReadonlyArray<ConversationSummary>, ReadError>
  /** Own entries with `from <= id <= to` in id order. `last` keeps only that many newest ones. */
  readonly entries: (
    conversation: ConversationId,
    range?: { readonly from?: EntryId; readonly to?: EntryId; readonly last?: number },
  ) => Effect.Effect<ReadonlyArray<Entry>, ReadError>
  /** An entry by its id, of whatever conversation. */
  readonly entry: (id: EntryId) => Effect.Effect<Entry | null, ReadError>
  /** Own entries and the fork ancestors' up to each fork point, in order (context rule 3). */
  readonly visibleEntries: (
    conversation: ConversationId,
    cutoff?: EntryId,
  ) => Effect.Effect<ReadonlyArray<Entry>, ReadError>
  /** How many entries are visible: own ones and the fork ancestors' up to each fork point. */
  readonly entryCount: (conversation: ConversationId) => Effect.Effect<number, ReadError>
  /** The visible entries from the newest head on, its own entry included: all that the next context needs (rules 1, 2). */
  readonly contextEntries: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<Entry>, ReadError>
  readonly task: (id: TaskId) => Effect.Effect<Task | null, ReadError>
  /** Tasks that are not terminal, oldest first; of one conversation, or of all. */
  readonly openTasks: (conversation?: ConversationId) => Effect.Effect<ReadonlyArray<Task>, ReadError>
  /** Every task that a task owns, whatever its status, oldest first. */
  readonly ownedTasks: (owner: TaskId) => Effect.Effect<ReadonlyArray<Task>, ReadError>
  /** Every conversation that a task owns, oldest first. */
  readonly ownedConversations: (owner: TaskId) => Effect.Effect<ReadonlyArray<Conversation>, ReadError>
  readonly taskByRequest: (requestId: string) => Effect.Effect<Task | null, ReadError>
  /** Tasks with an effect that may or may not have happened, newest first. */
  readonly tasksInDoubt: (options: {
    readonly conversation?: ConversationId
    readonly limit: number
  }) => Effect.Effect<ReadonlyArray<Task>, ReadError>
  readonly submission: (id: SubmissionId) => Effect.Effect<Submission | null, ReadError>
  readonly submissionByRequest: (
    conversation: ConversationId,
    requestId: string,
  ) => Effect.Effect<Submission | null, ReadError>
  /** Submissions that are `queued` or `placed`, oldest first. */
  readonly openSubmissions: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<Submission>, ReadError>
  /** Live (not retired) documents of one conversation. */
  readonly documents: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<DocumentRecord>, ReadError>
  readonly globalDocument: (kind: string, key: string) => Effect.Effect<DocumentRecord | null, ReadError>
  /** The epoch of the newest owner, whether it lives or not: what carries an older fence was taken by an earlier one. */
  readonly ownerEpoch: Effect.Effect<number, ReadError>
  /**
   * Those of the given epochs (see {@link StoreService.epoch}) and tokens (see {@link StoreService.takeConversation}) that are over for good:
   * whoever had one can write nothing under it any more. A token is over when its conversation was taken again or is gone, and when the
   * epoch of the node that took it is.
   */
  readonly endedEpochs: (epochs: ReadonlyArray<number>) => Effect.Effect<ReadonlyArray<number>, ReadError>
}

export interface StoreService extends StoreReads {
  /** Where it is, for messages: a path or a URL without secrets. */
  readonly location: string
  /** The owner epoch under which this process writes: the fencing token of the tasks that it takes. */
  readonly epoch: number
  /**
   * Takes a conversation for this node: what is committed under an earlier token from now on fails with `Fenced`, and ids minted from now
   * on are larger than those in it. Null where one process owns the whole database: its epoch fences everything.
   */
  readonly takeConversation: (id: ConversationId) => Effect.Effect<number | null, CommitError>
  /** `count` fresh ids in increasing order. Never the same twice, also after a crash. */
  readonly mint: <K extends keyof IdsByKind>(
    kind: K,
    count: number,
  ) => Effect.Effect<ReadonlyArray<IdsByKind[K]>, CommitError>
  /** Writes atomically; answers once durable. Commits that arrive together share a transaction, each failing alone. */
  readonly commit: (commit: Commit) => Effect.Effect<Seq, CommitError>
  /** Claims what is due and gives it, the earliest first. Two claims never give the same attempt. */
  readonly claimJobs: (claim: JobClaim) => Effect.Effect<ReadonlyArray<Job>, CommitError | ReadError>
}

/** The one writer of a database. */
export class Store extends Context.Tag("super-pi/Store")<Store, StoreService>() {}

/** Reads that need no ownership: they work while another process owns the database. */
export class StoreReader extends Context.Tag("super-pi/StoreReader")<
  StoreReader,
  StoreReads & { readonly location: string }
>() {}
