/**
 * Several nodes of the test's process on one PostgreSQL database: a store, a placement that is moved by hand, and signals for each.
 */
import { Effect, type Scope } from "effect"
import { migrate } from "../../src/storage/postgres/migrations.ts"
import { postgresSettings } from "../../src/storage/postgres/settings.ts"
import { postgresSignals } from "../../src/storage/postgres/signals.ts"
import { makePostgresNode } from "../../src/storage/postgres/store.ts"
import { handPlacement } from "./hand-placement.ts"
import type { ClusterNode } from "./memory-cluster.ts"
import { postgresDatabase } from "./postgres.ts"

/** A fresh database; each call of what it gives opens another node on it, until the scope closes. */
export const postgresCluster: Effect.Effect<
  (name: string) => Effect.Effect<ClusterNode, unknown, Scope.Scope>,
  unknown,
  Scope.Scope
> = Effect.gen(function* () {
  const database = yield* postgresDatabase
  const found = postgresSettings(database.env)
  if (found._tag === "Left") return yield* Effect.die(found.left)
  const settings = found.right
  yield* migrate(settings)
  return (name) =>
    Effect.gen(function* () {
      const hand = handPlacement()
      const { cluster, store } = yield* makePostgresNode({
        settings,
        node: { name, address: "", version: "0" },
        held: hand.placement.held,
      })
      const signals = yield* postgresSignals(settings)
      return { ...hand, name, store, places: cluster, signals, fence: Effect.orDie(cluster.fenceOff(store.epoch)) }
    })
})
