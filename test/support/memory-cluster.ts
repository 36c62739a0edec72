/**
 * Several nodes on one database in memory: a store, a placement and signals for each. What PostgreSQL does with epochs, places and claims in
 * its simplest form, so that what stands on it is tested without a server.
 */
import { Effect } from "effect"
import { shardCount, shardOf } from "../../src/domain/cluster.ts"
import type { ConversationId, JobId, Seq, TaskId } from "../../src/domain/ids.ts"
import type { Job } from "../../src/domain/job.ts"
import { claimed } from "../../src/domain/job-transitions.ts"
import type { Signal } from "../../src/domain/signal.ts"
import { isOpen, isWorkflow } from "../../src/domain/task-rules.ts"
import type { ClusterStoreService } from "../../src/storage/cluster-port.ts"
import { Fenced } from "../../src/storage/errors.ts"
import { applyCommit } from "../../src/storage/memory/state.ts"
import { type MemoryDatabase, memoryDatabase, memoryReads } from "../../src/storage/memory/store.ts"
import type { SignalsService } from "../../src/storage/signal-port.ts"
import type { Commit, IdsByKind, StoreService } from "../../src/storage/store.ts"
import { type HandPlacement, handPlacement } from "./hand-placement.ts"

/** One node's view of the database and of the others. */
export interface ClusterNode extends HandPlacement {
  readonly name: string
  readonly store: StoreService
  readonly places: ClusterStoreService
  readonly signals: SignalsService
  /** Its epoch is over: everything that still comes from it is refused. */
  readonly fence: Effect.Effect<void>
}

export const allShards: ReadonlyArray<number> = Array.from({ length: shardCount }, (_, index) => index + 1)

export class MemoryCluster {
  readonly database: MemoryDatabase = memoryDatabase()
  private readonly ended = new Set<number>()
  private readonly ears = new Set<{ readonly epoch: number; readonly heard: (signal: Signal | null) => void }>()
  /** Signals are lost while this is true. */
  deaf = false

  placeOfConversation(id: number): number | null {
    const row = this.database.records.conversations.get(id)
    if (row === undefined) return null
    return row.owner === null ? id : (this.placeOfTask(row.owner) ?? id)
  }

  placeOfTask(id: number): number | null {
    const row = this.database.records.tasks.get(id)
    if (row === undefined) return null
    if (row.conversation !== null) return this.placeOfConversation(row.conversation)
    return row.owner === null ? id : this.placeOfTask(row.owner)
  }

  node(name: string): ClusterNode {
    const { database } = this
    const epoch = ++database.epoch
    const hand = handPlacement()
    const { holds } = hand.placement
    const owned = Effect.suspend(() =>
      this.ended.has(epoch) ? new Fenced({ what: name, held: epoch, current: database.epoch }) : Effect.void,
    )
    const plain = memoryReads(
      () => database.records,
      () => database.epoch,
    )
    const mine = ({ conversation }: Job): boolean => {
      const place = conversation === null ? null : this.placeOfConversation(conversation)
      return place === null || holds(place)
    }
    const due = (queue: string): ReadonlyArray<Job> =>
      [...database.records.jobs.values()]
        .filter((job) => job.queue === queue && job.state === "available" && mine(job))
        .sort((a, b) => a.runAt - b.runAt || a.id - b.id)
    const reads = {
      ...plain,
      endedEpochs: (epochs: ReadonlyArray<number>) => Effect.sync(() => epochs.filter((one) => this.ended.has(one))),
      dueAt: (queue: string) => Effect.sync(() => due(queue)[0]?.runAt ?? null),
    }
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
    const store: StoreService = {
      ...reads,
      location: `memory of ${name}`,
      epoch,
      takeConversation: () => Effect.succeed(null),
      mint: <K extends keyof IdsByKind>(kind: K, count: number) =>
        Effect.map(owned, () => {
          const first = database.next[kind]
          database.next[kind] += count
          // the brand is what minting gives
          return Array.from({ length: count }, (_, index) => first + index) as unknown as ReadonlyArray<IdsByKind[K]>
        }),
      commit,
      claimJobs: (claim) =>
        Effect.gen(function* () {
          const wanted = due(claim.queue)
            .filter((job) => job.runAt <= claim.now)
            .slice(0, Math.max(0, claim.limit))
          if (wanted.length === 0) return []
          yield* commit({
            jobUpdates: wanted.map((job) => ({ job: claimed(job, claim), from: "available", fence: job.fence })),
          })
          return wanted.flatMap(({ id }) => database.records.jobs.get(id) ?? [])
        }),
    }
    const places: ClusterStoreService = {
      placeOfConversation: (id: ConversationId) => Effect.sync(() => this.placeOfConversation(id)),
      placeOfTask: (id: TaskId) => Effect.sync(() => this.placeOfTask(id)),
      busyConversations: () => Effect.succeed([]),
      adoptTasks: (shards) =>
        Effect.map(owned, () => {
          const fence = ++database.epoch
          const tasks = new Map(database.records.tasks)
          const found = [...tasks.values()].flatMap((row) => {
            const place = this.placeOfTask(row.id) ?? row.id
            if (!isOpen(row) || !shards.includes(shardOf(place))) return []
            const task = isWorkflow(row) ? { ...row, fence } : row
            tasks.set(task.id, task)
            return [{ task, place }]
          })
          database.records = { ...database.records, tasks }
          return { fence, tasks: found.sort((a, b) => a.task.id - b.task.id) }
        }),
      fenceOff: (other) => Effect.sync(() => void this.ended.add(other)),
      oldestUnserved: Effect.succeed(null),
    }
    return {
      ...hand,
      name,
      store,
      places,
      signals: {
        tell: (signals) => {
          if (this.deaf) return
          for (const ear of this.ears) if (ear.epoch !== epoch) for (const signal of signals) ear.heard(signal)
        },
        listen: (heard) =>
          Effect.asVoid(
            Effect.acquireRelease(
              Effect.sync(() => {
                const ear = { epoch, heard }
                this.ears.add(ear)
                return ear
              }),
              (ear) => Effect.sync(() => this.ears.delete(ear)),
            ),
          ),
      },
      fence: Effect.sync(() => void this.ended.add(epoch)),
    }
  }

  job(id: JobId): Job | undefined {
    return this.database.records.jobs.get(id)
  }
}
