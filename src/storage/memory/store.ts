/**
 * The storage port in memory: for tests of what stands on it, and as the model of the others. A {@link MemoryDatabase} outlives the
 * stores that are opened on it, as a file does; opening one again fences the store before it.
 */
import { Effect, Layer } from "effect"
import type { Seq } from "../../domain/ids.ts"
import { claimJobsBy } from "../claim-jobs.ts"
import { Fenced, type ReadError } from "../errors.ts"
import { type Commit, type IdsByKind, Store, type StoreReads, type StoreService } from "../store.ts"
import { artifactOf, listArtifacts } from "./artifacts.ts"
import { documentsAt, liveDocument, liveFamily, revisionsAt } from "./documents.ts"
import { countJobs, dueAt, executingJobs, jobByKey, listJobs } from "./jobs.ts"
import { listNames, nameOf } from "./names.ts"
import {
  contextEntries,
  globalDocument,
  listConversations,
  liveDocuments,
  openSubmissions,
  openTasks,
  ownEntries,
  submissionByRequest,
  visibleEntries,
} from "./reads.ts"
import { applyCommit, noRecords, type Records } from "./state.ts"
import { ownedConversations, ownedTasks, taskByRequest, tasksInDoubt } from "./tasks.ts"

export interface MemoryDatabase {
  records: Records
  epoch: number
  seq: number
  readonly next: Record<keyof IdsByKind, number>
}

/** A new, empty one. */
export const memoryDatabase = (): MemoryDatabase => ({
  records: noRecords,
  epoch: 0,
  seq: 0,
  next: { conversation: 1, entry: 1, task: 1, submission: 1, document: 1, job: 1 },
})

/** The reads of the port on whatever records are current. */
export const memoryReads = (records: () => Records, epoch: () => number = () => 0): StoreReads => {
  const read = <A>(body: (now: Records) => A): Effect.Effect<A, ReadError> => Effect.sync(() => body(records()))
  return {
    conversation: (id) => read((now) => now.conversations.get(id) ?? null),
    conversations: (options) => read((now) => listConversations(now, options)),
    entries: (conversation, range) => read((now) => ownEntries(now, conversation, range)),
    entry: (id) => read((now) => now.entries.get(id) ?? null),
    visibleEntries: (conversation, cutoff) => read((now) => visibleEntries(now, conversation, cutoff)),
    entryCount: (conversation) => read((now) => visibleEntries(now, conversation).length),
    contextEntries: (conversation) => read((now) => contextEntries(now, conversation)),
    task: (id) => read((now) => now.tasks.get(id) ?? null),
    openTasks: (conversation) => read((now) => openTasks(now, conversation)),
    submission: (id) => read((now) => now.submissions.get(id) ?? null),
    submissionByRequest: (conversation, requestId) => read((now) => submissionByRequest(now, conversation, requestId)),
    openSubmissions: (conversation) => read((now) => openSubmissions(now, conversation)),
    documents: (conversation) => read((now) => liveDocuments(now, conversation)),
    globalDocument: (kind, key) => read((now) => globalDocument(now, kind, key)),
    document: (id) => read((now) => now.documents.get(id) ?? null),
    findDocument: (address) => read((now) => liveDocument(now, address)),
    documentsOf: (family) => read((now) => liveFamily(now, family)),
    documentsAt: (conversation, seq) => read((now) => documentsAt(now, conversation, seq)),
    documentRevisions: (document, seq) => read((now) => revisionsAt(now, document, seq)),
    ownerEpoch: read(epoch),
    endedEpochs: (epochs) => read(() => epochs.filter((one) => one < epoch())),
    ownedTasks: (owner) => read((now) => ownedTasks(now.tasks, owner)),
    ownedConversations: (owner) => read((now) => ownedConversations(now.conversations, owner)),
    taskByRequest: (requestId) => read((now) => taskByRequest(now.tasks, requestId)),
    tasksInDoubt: (options) => read((now) => tasksInDoubt(now.tasks, options)),
    job: (id) => read((now) => now.jobs.get(id) ?? null),
    jobByKey: (queue, uniqueKey) => read((now) => jobByKey(now.jobs, queue, uniqueKey)),
    jobs: (options) => read((now) => listJobs(now.jobs, options)),
    jobCounts: () => read((now) => countJobs(now.jobs)),
    dueAt: (queue) => read((now) => dueAt(now.jobs, queue)),
    executingJobs: (queue) => read((now) => executingJobs(now.jobs, queue)),
    artifact: (conversation, name) => read((now) => artifactOf(now.artifacts, conversation, name)),
    artifacts: (conversation) => read((now) => listArtifacts(now.artifacts, conversation)),
    name: (key) => read((now) => nameOf(now.names, now.conversations, key)),
    names: (options) => read((now) => listNames(now.names, now.conversations, options)),
  }
}

/** Takes ownership of `database`. */
export const makeMemoryStore = (database: MemoryDatabase): Effect.Effect<StoreService> =>
  Effect.sync(() => {
    const location = "memory"
    const epoch = ++database.epoch
    const owned = Effect.suspend(() =>
      database.epoch === epoch ? Effect.void : new Fenced({ what: location, held: epoch, current: database.epoch }),
    )
    const reads = memoryReads(
      () => database.records,
      () => database.epoch,
    )
    const commit = (rows: Commit) =>
      Effect.zipRight(
        owned,
        Effect.suspend(() => {
          const seq = (database.seq + 1) as Seq
          return Effect.map(applyCommit(database.records, rows, seq), (records) => {
            database.records = records
            database.seq = seq
            return seq
          })
        }),
      )
    return {
      ...reads,
      location,
      epoch,
      mint: <K extends keyof IdsByKind>(kind: K, count: number) =>
        Effect.map(owned, () => {
          const first = database.next[kind]
          database.next[kind] += count
          // the brand is what minting gives
          return Array.from({ length: count }, (_, index) => first + index) as unknown as ReadonlyArray<IdsByKind[K]>
        }),
      commit,
      takeConversation: () => Effect.succeed(null),
      claimJobs: claimJobsBy({ ...reads, commit }),
    }
  })

export const MemoryStore = {
  /** The `Store` in memory; on a database of its own unless one is given. */
  layer: (database: MemoryDatabase = memoryDatabase()): Layer.Layer<Store> =>
    Layer.effect(Store, makeMemoryStore(database)),
}
