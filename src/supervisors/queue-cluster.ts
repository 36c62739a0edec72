/**
 * The queues of a node among others: they hear what the other nodes did with queues and jobs, take up what belongs to places that come, and
 * let go of what belongs to places that leave.
 */
import { Effect, Option, type Scope } from "effect"
import { type ActorSystemService, ask, unsafeTell } from "../actors/kernel/index.ts"
import type { QueueMessage } from "../actors/queue/messages.ts"
import type { Signal } from "../domain/signal.ts"
import type { SignalsService } from "../storage/signal-port.ts"
import type { PlacementService } from "./cluster/placement.ts"
import { registered, send } from "./queue-wake.ts"

interface Parts {
  readonly system: ActorSystemService
  /** Names of the node's queues. */
  readonly queues: ReadonlyArray<string>
}

const messageOf = (signal: Signal): { readonly queue: string; readonly message: QueueMessage } | null => {
  switch (signal.type) {
    case "jobs":
      return { queue: signal.queue, message: { type: "look" } }
    case "job":
      return { queue: signal.queue, message: { type: "changed", job: signal.job } }
    case "pause":
      return { queue: signal.queue, message: { type: "pauseChanged" } }
    case "task":
      return null
  }
}

/** Passes on what other nodes tell. Where something may have been missed every queue looks. */
export const hearSignals = (
  { queues, system }: Parts,
  signals: SignalsService,
): Effect.Effect<void, never, Scope.Scope> => {
  const pass = (queue: string, message: QueueMessage): void => {
    // One that is not told, because it restarts or is swamped, looks by itself.
    const ref = Effect.runSync(system.registry.whereis<QueueMessage>(registered(queue)))
    if (Option.isSome(ref)) unsafeTell(ref.value, message)
  }
  return signals.listen((signal) => {
    if (signal === null) {
      for (const queue of queues) {
        pass(queue, { type: "pauseChanged" })
        pass(queue, { type: "look" })
      }
      return
    }
    const told = messageOf(signal)
    if (told !== null && queues.includes(told.queue)) pass(told.queue, told.message)
  })
}

/** Follows the shards of this node. */
export const followPlaces = (
  { queues, system }: Parts,
  placement: PlacementService,
): Effect.Effect<void, never, Scope.Scope> => {
  const leave = (queue: string, shards: ReadonlySet<number>, graceMs: number) =>
    Effect.flatMap(
      system.registry.whereis<QueueMessage>(registered(queue)),
      Option.match({
        onNone: () => Effect.void,
        onSome: (ref) =>
          ask<QueueMessage, void>(ref, (reply) => ({ type: "leaving", shards, graceMs, reply }), {
            timeoutMs: Number.POSITIVE_INFINITY,
          }).pipe(
            // It died, and its attempts with it: they are taken back by whoever holds their places.
            Effect.catchAll((error) => Effect.logWarning(`queue ${queue}: ${error.message}`)),
          ),
      }),
    )
  return placement.listen({
    gained: () => Effect.forEach(queues, (queue) => send({ system }, queue, { type: "gained" }), { discard: true }),
    leaving: (shards, graceMs) =>
      Effect.forEach(queues, (queue) => leave(queue, new Set(shards), graceMs), {
        concurrency: "unbounded",
        discard: true,
      }),
  })
}
