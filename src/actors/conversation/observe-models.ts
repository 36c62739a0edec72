/**
 * The models as one conversation asks them: each request is a span `chat <model>` of what it is made for (the turn, or a compaction), and is
 * counted. Attributes follow OpenTelemetry's conventions for generative AI; nothing that was said is among them.
 */
import { Effect, Exit, type Tracer } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import type { StopReason } from "../../domain/message.ts"
import { traceparentOf } from "../../domain/trace-context.ts"
import { traced } from "../../domain/traced.ts"
import type { Usage } from "../../domain/usage.ts"
import type { ModelError, ModelRequest, ModelsService, PartSink } from "../../models/model.ts"
import { failureCode } from "./machine/request.ts"
import type { Watching } from "./observe.ts"

/** Providers whose name in the conventions is another one. */
const providerNames: Readonly<Record<string, string>> = { gemini: "gcp.gemini" }

const providerOf = (model: string): string => {
  const id = model.split("/", 1)[0] ?? ""
  return providerNames[id] ?? id
}

const isModelError = (error: unknown): error is ModelError =>
  typeof error === "object" && error !== null && "_tag" in error && "model" in error

/** Why a request failed: `rate_limited`, `context_overflow` and so on. */
export const requestCode = (error: unknown): string | null => {
  if (!isModelError(error)) return null
  return error._tag === "ModelTransient" ? error.reason : failureCode(error)
}

/** What was seen of a response. */
interface Seen {
  firstAt: bigint | null
  usage: Usage | null
  stopReason: StopReason | null
}

const describe = (span: Tracer.Span, { stopReason, usage }: Seen): void => {
  if (stopReason !== null) span.attribute("gen_ai.response.finish_reasons", [stopReason])
  if (usage === null) return
  span.attribute("gen_ai.usage.input_tokens", usage.input)
  span.attribute("gen_ai.usage.output_tokens", usage.output)
  if (usage.cacheRead > 0) span.attribute("gen_ai.usage.cache_read.input_tokens", usage.cacheRead)
  if (usage.cacheWrite > 0) span.attribute("gen_ai.usage.cache_creation.input_tokens", usage.cacheWrite)
}

export interface AskedBy {
  readonly conversation: ConversationId
  /** Requests carry the `traceparent` of their span. */
  readonly propagate: boolean
}

export const observedModels = (
  models: ModelsService,
  { clock, observer, tracer }: Watching,
  { conversation, propagate }: AskedBy,
): ModelsService => {
  const respond = (request: ModelRequest, sink: PartSink): Effect.Effect<void, ModelError> =>
    Effect.suspend(() => {
      const { model } = request
      const startedAt = clock.unsafeCurrentTimeNanos()
      const seen: Seen = { firstAt: null, usage: null, stopReason: null }
      const watched: PartSink = (parts) => {
        seen.firstAt ??= clock.unsafeCurrentTimeNanos()
        for (const part of parts) {
          if (part.type !== "finish") continue
          seen.usage = part.usage
          seen.stopReason = part.stopReason
        }
        return sink(parts)
      }
      const asked =
        propagate && tracer !== null
          ? Effect.flatMap(Effect.orDie(Effect.currentSpan), (span) => {
              const traceparent = traceparentOf(span)
              return models.respond(traceparent === null ? request : { traceparent, ...request }, watched)
            })
          : models.respond(request, watched)
      const attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": providerOf(model),
        "gen_ai.system": providerOf(model),
        "gen_ai.request.model": model,
        "gen_ai.conversation.id": String(conversation),
        "gen_ai.request.stream": true,
      }
      const ended = (_: unknown, span: Tracer.Span) => {
        describe(span, seen)
        return null
      }
      const spanned =
        tracer === null
          ? asked
          : asked.pipe(traced(`chat ${model}`, attributes, { kind: "client", ended, code: requestCode }))
      if (observer === null) return spanned
      const msSince = (at: bigint): number => Number(at - startedAt) / 1e6
      return Effect.onExit(spanned, (exit) =>
        Effect.sync(() => {
          observer.requestEnded({
            model,
            status: Exit.isSuccess(exit) ? "ok" : statusOf(exit),
            durationMs: msSince(clock.unsafeCurrentTimeNanos()),
            firstMs: seen.firstAt === null ? null : msSince(seen.firstAt),
            usage: seen.usage,
          })
        }),
      )
    })
  return { ...models, respond }
}

const statusOf = (exit: Exit.Failure<unknown, ModelError>): string => {
  if (Exit.isInterrupted(exit)) return "interrupted"
  return exit.cause._tag === "Fail" ? (requestCode(exit.cause.error) ?? "error") : "defect"
}
