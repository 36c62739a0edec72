/**
 * Where jobs run when several nodes share the database: a job about a conversation only on the node that holds the conversation's place,
 * any other job on any node.
 */
import { Effect } from "effect"
import { shardOf } from "../../domain/cluster.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { Job } from "../../domain/job.ts"
import type { ReadError } from "../../storage/errors.ts"
import type { StoreReads } from "../../storage/store.ts"
import { epochsOf, foreignJobs, type Gone, type Holder } from "./decide.ts"

export class JobPlacing {
  /** Whether this node holds the shard of a place. */
  private readonly holds: (place: number) => boolean
  private readonly read: (id: ConversationId) => Effect.Effect<number | null, ReadError>

  constructor(
    holds: (place: number) => boolean,
    read: (id: ConversationId) => Effect.Effect<number | null, ReadError>,
  ) {
    this.holds = holds
    this.read = read
  }

  /** Null: the job is at no place. */
  private placeOf({ conversation }: Job): Effect.Effect<number | null, ReadError> {
    return conversation === null ? Effect.succeed(null) : this.read(conversation)
  }

  /** The jobs at places that this node holds: nobody else may run them. */
  held(jobs: ReadonlyArray<Job>): Effect.Effect<ReadonlyArray<Job>, ReadError> {
    return this.at(jobs, this.holds)
  }

  /** The jobs at the places of these shards. */
  in(jobs: ReadonlyArray<Job>, shards: ReadonlySet<number>): Effect.Effect<ReadonlyArray<Job>, ReadError> {
    return this.at(jobs, (place) => shards.has(shardOf(place)))
  }

  private at(
    jobs: ReadonlyArray<Job>,
    where: (place: number) => boolean,
  ): Effect.Effect<ReadonlyArray<Job>, ReadError> {
    return Effect.filter(jobs, (job) => Effect.map(this.placeOf(job), (place) => place !== null && where(place)))
  }
}

/** Which of those that execute elsewhere have lost their worker, as far as the database knows. */
export const goneAmong = (
  executing: ReadonlyArray<Job>,
  self: Holder,
  store: StoreReads,
  placing: JobPlacing | undefined,
): Effect.Effect<Gone, ReadError> =>
  Effect.gen(function* () {
    const others = foreignJobs(executing, self)
    const epochs = others.length === 0 ? [] : yield* store.endedEpochs(epochsOf(others))
    const jobs = placing === undefined ? [] : yield* placing.held(others)
    return { epochs: new Set(epochs), jobs: new Set(jobs) }
  })
