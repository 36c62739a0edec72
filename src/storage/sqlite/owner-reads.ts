/**
 * Which connection an owner reads on. What a conversation needs to be loaded and to take a turn, what a workflow needs for a phase, and what a
 * queue needs to claim a job is hot: it runs as prepared statements on the writer's connection, each one synchronous step. So are the few reads
 * of a start (open tasks, ended epochs, switches of queues), since a program that runs one turn should not load the client for them. Listings,
 * counts, transcripts, artifacts, names and what a fork looks up once go through the client on a second connection, which sees every commit that was answered.
 */
import type { Reading } from "../reading.ts"
import type { StoreReads } from "../store.ts"
import { storeReads } from "./reads.ts"

/** `writers`: on the writer's connection; `second`: beside it. */
export const ownerReads = (writers: Reading, second: Reading, location: string): StoreReads => {
  const hot = storeReads(writers, location)
  const rest = storeReads(second, location)
  return {
    ...hot,
    conversations: rest.conversations,
    visibleEntries: rest.visibleEntries,
    ownedConversations: rest.ownedConversations,
    tasksInDoubt: rest.tasksInDoubt,
    documentsAt: rest.documentsAt,
    jobs: rest.jobs,
    jobCounts: rest.jobCounts,
    artifact: rest.artifact,
    artifacts: rest.artifacts,
    name: rest.name,
    names: rest.names,
  }
}
