/**
 * Waking queues: the actors of this node, and by a signal those of the other nodes that share the database.
 */
import { Effect, Option } from "effect"
import { type ActorSystemService, tell } from "../actors/kernel/index.ts"
import type { QueueMessage } from "../actors/queue/messages.ts"
import type { Seq } from "../domain/ids.ts"
import type { CommitError } from "../storage/errors.ts"
import type { SignalsService } from "../storage/signal-port.ts"
import type { Commit, StoreService } from "../storage/store.ts"

/** Registry name of a queue's actor. */
export const registered = (queue: string): string => `queue-${queue}`

export interface QueueWakeParts {
  readonly store: StoreService
  readonly system: ActorSystemService
  /** Default: nobody shares the database. */
  readonly signals?: SignalsService | undefined
}

/** Tells the actor of a queue something, where this node has one. */
export const send = ({ system }: Pick<QueueWakeParts, "system">, queue: string, message: QueueMessage) =>
  Effect.flatMap(
    system.registry.whereis<QueueMessage>(registered(queue)),
    Option.match({ onNone: () => Effect.void, onSome: (ref) => tell(ref, message) }),
  )

const namesIn = ({ jobs = [] }: Commit): ReadonlyArray<string> => [...new Set(jobs.map((job) => job.queue))]

/** Commits, and wakes this node's queues of the jobs in it. Enough where those are about conversations of this node. */
export const commitHere = (parts: QueueWakeParts, commit: Commit): Effect.Effect<Seq, CommitError> =>
  Effect.tap(parts.store.commit(commit), () =>
    Effect.forEach(namesIn(commit), (queue) => send(parts, queue, { type: "look" }), { discard: true }),
  )

/** Commits, and wakes the queues of the jobs in it, on every node. */
export const commitEverywhere = (parts: QueueWakeParts, commit: Commit): Effect.Effect<Seq, CommitError> =>
  Effect.tap(commitHere(parts, commit), () =>
    Effect.sync(() => parts.signals?.tell(namesIn(commit).map((queue) => ({ type: "jobs", queue })))),
  )
