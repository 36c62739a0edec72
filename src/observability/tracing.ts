/**
 * The exporting tracer of a process, from its environment; loaded only where traces are configured. The encoding to JSON and Protocol Buffers is
 * that of @effect/opentelemetry; queue and spans are our own (docs/decisions says why).
 */
import * as OtlpSerialization from "@effect/opentelemetry/OtlpSerialization"
import { Effect, Runtime, type Scope, type Tracer } from "effect"
import { type Encoded, SpanExporter } from "./exporter.ts"
import { traceData } from "./otlp.ts"
import { type TraceSettings, traceConfig } from "./settings.ts"
import { type EndedSpan, exportingTracer } from "./tracer.ts"

/** How long the end of the process waits for the last spans, in ms. */
const closeMs = 3_000

const encoding = ({ protocol, resource }: TraceSettings): Effect.Effect<(spans: ReadonlyArray<EndedSpan>) => Encoded> =>
  Effect.map(OtlpSerialization.OtlpSerialization, ({ traces }) => (spans: ReadonlyArray<EndedSpan>) => {
    const body = traces(traceData(spans, resource))
    if (body._tag !== "Uint8Array") throw new Error(`expected encoded spans as bytes, got ${body._tag}`)
    return { body: body.body, contentType: body.contentType }
  }).pipe(Effect.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf))

/** A tracer that exports until the scope closes, which sends what is left. Trouble with the collector is a warning in the log. */
export const makeTracing = (settings: TraceSettings): Effect.Effect<Tracer.Tracer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const encode = yield* encoding(settings)
    const runtime = yield* Effect.runtime<never>()
    const trouble = (line: string): void => {
      Runtime.runFork(runtime)(Effect.logWarning(line))
    }
    const exporter = new SpanExporter({ settings, encode, trouble })
    yield* Effect.addFinalizer(() => Effect.promise(() => exporter.close(closeMs)))
    return exportingTracer(settings.sampling, exporter.push)
  })

/** Runs `work` under an exporting tracer where the environment configures one; a configuration that is wrong is told, and traces stay off. */
export const underTracer = <A, E, R>(
  env: Readonly<Record<string, string | undefined>>,
  version: string,
  work: Effect.Effect<A, E, R>,
): Effect.Effect<A, E, R | Scope.Scope> => {
  const config = traceConfig(env, version)
  switch (config.type) {
    case "off":
      return work
    case "wrong":
      return Effect.zipRight(Effect.logWarning(`traces are off: ${config.fault}`), work)
    case "on":
      return Effect.flatMap(makeTracing(config.settings), (tracer) => Effect.withTracer(work, tracer))
  }
}
