/**
 * The task engine of a node among others: what it needs of the cluster, and the shards and signals that it follows.
 */
import { Effect, Option, type Scope } from "effect"
import { type ActorSystemService, ask, type ReplyTo, unsafeTell } from "../actors/kernel/index.ts"
import type { LedgerParts } from "../actors/task/ledger-parts.ts"
import type { LedgerMessage } from "../actors/task/messages.ts"
import type { TaskSharing } from "../actors/task/sharing.ts"
import { ClusterStore } from "../storage/cluster-port.ts"
import { Signals } from "../storage/signal-port.ts"
import { Placement } from "./cluster/placement.ts"

/** Registry name of the ledger. */
export const ledgerName = "tasks"

/** Null where the node is alone. */
export const taskSharing: Effect.Effect<TaskSharing | null> = Effect.gen(function* () {
  const placement = Option.getOrNull(yield* Effect.serviceOption(Placement))
  const store = Option.getOrNull(yield* Effect.serviceOption(ClusterStore))
  const signals = Option.getOrNull(yield* Effect.serviceOption(Signals))
  if (placement === null || store === null) return null
  const { held, holds, listen } = placement
  const { adoptTasks: adopt, placeOfConversation } = store
  return { held, holds, listen, adopt, placeOfConversation, signals }
})

/** Brings shards that come and go, and what is heard of tasks elsewhere, to the ledger until the scope closes. */
export const followTaskPlaces = (
  { feed, sharing }: LedgerParts,
  system: ActorSystemService,
): Effect.Effect<void, never, Scope.Scope> => {
  if (sharing === null) return Effect.void
  const ledger = system.registry.whereis<LedgerMessage>(ledgerName)
  const tellLedger = (message: (reply: ReplyTo<void>) => LedgerMessage): Effect.Effect<void> =>
    Effect.flatMap(
      ledger,
      Option.match({
        // It reads which shards there are when it starts.
        onNone: () => Effect.void,
        onSome: (ref) =>
          Effect.catchAll(ask<LedgerMessage, void>(ref, message, { timeoutMs: Number.POSITIVE_INFINITY }), (error) =>
            Effect.logWarning(`task engine: ${error.message}`),
          ),
      }),
    )
  const hear = sharing.signals?.listen((signal) => {
    if (signal !== null && signal.type !== "task") return
    if (signal !== null) feed.nudge(signal.task)
    const found = Effect.runSync(ledger)
    if (Option.isSome(found)) unsafeTell(found.value, { type: "lookElsewhere" })
  })
  const follow = sharing.listen({
    gained: (shards) => tellLedger((reply) => ({ type: "gained", shards, reply })),
    leaving: (shards, graceMs) => tellLedger((reply) => ({ type: "leaving", shards, graceMs, reply })),
  })
  return Effect.zipRight(hear ?? Effect.void, follow)
}
