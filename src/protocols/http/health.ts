/**
 * How a node without a cluster service of its own is judged: a read of the database works and the event loop turns.
 */
import { Clock, Effect } from "effect"
import type { ClusterService } from "../../actors/cluster.ts"
import type { NodeHealth } from "../../domain/cluster.ts"
import type { ProtocolService } from "../service.ts"

/** For a read of the database, in ms. */
const readLimit = 2000
/** A turn of the event loop that takes longer counts as stuck, in ms. */
const lagLimit = 1000
/** For how long one look counts for everybody who asks, in ms. */
const freshFor = 500

/** A look at the node on behalf of nobody. */
const look = (sessions: ProtocolService["sessions"]): Effect.Effect<NodeHealth> =>
  Effect.gen(function* () {
    const started = yield* Clock.currentTimeMillis
    yield* Effect.sleep(0)
    const eventLoopLagMs = (yield* Clock.currentTimeMillis) - started
    const database = yield* sessions.list({ limit: 1, principal: "health" }).pipe(
      // over a network that is cut, the end of what comes too late takes longer
      Effect.disconnect,
      Effect.timeout(readLimit),
      Effect.match({ onSuccess: () => "ok" as const, onFailure: () => "failed" as const }),
      Effect.catchAllDefect(() => Effect.succeed("failed" as const)),
    )
    const faults = [
      ...(database === "ok" ? [] : ["the database does not answer"]),
      ...(eventLoopLagMs < lagLimit ? [] : [`the event loop is ${eventLoopLagMs} ms late`]),
    ]
    const healthy = faults.length === 0
    return { healthy, ready: healthy, faults, database, eventLoopLagMs, oldestUnservedMs: null, draining: false }
  })

/** The health of a node for everybody who asks: those who ask at once share one look, and so do those who ask soon after. */
export const sharedHealth = (
  sessions: ProtocolService["sessions"],
  cluster: ClusterService | null,
): Effect.Effect<NodeHealth> => {
  let last: { readonly health: NodeHealth; readonly at: number } | null = null
  let looking: Effect.Effect<NodeHealth> | null = null
  const fresh = cluster?.health ?? look(sessions)
  return Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (last !== null && now - last.at < freshFor) return last.health
    looking ??= yield* Effect.cached(
      Effect.ensuring(
        fresh,
        Effect.sync(() => {
          looking = null
        }),
      ),
    )
    const health = yield* looking
    last = { health, at: yield* Clock.currentTimeMillis }
    return health
  })
}
