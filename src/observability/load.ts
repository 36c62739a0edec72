/**
 * Metrics for an application that embeds the engine: the library behind them is loaded when they are made.
 */
import { Effect } from "effect"
import type { Metrics, MetricsOptions } from "./metrics.ts"

/** Fresh metrics, which count what their `observer` is told. */
export const loadMetrics = (options: MetricsOptions): Effect.Effect<Metrics> =>
  Effect.map(
    Effect.promise(() => import("./metrics.ts")),
    ({ makeMetrics }) => makeMetrics(options),
  )
