/**
 * Spans that cost nothing until somebody looks: under Effect's own tracer, which keeps spans for nobody, the work runs as it is.
 */
import { Effect, type Tracer } from "effect"

/** The tracer of a program that sets none. */
const silent: Tracer.Tracer = Effect.runSync(Effect.tracer)

/** `work` in a span of that name where a tracer is set (for example OpenTelemetry's); its stack is not captured. */
export const traced =
  (name: string, attributes: Readonly<Record<string, unknown>>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.tracerWith((tracer) =>
      tracer === silent ? work : Effect.withSpan(work, name, { captureStackTrace: false, attributes }),
    )
