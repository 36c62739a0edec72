/**
 * The model port: one interface for every language-model service. A provider owns one service; a model is named `provider/model` in
 * records and by its plain name where that is unambiguous.
 */
import type { Stream } from "effect"
import { Context, Effect, Layer, Schema } from "effect"
import type { Effort } from "../domain/document.ts"
import type { AssistantPart, Message, StopReason } from "../domain/message.ts"
import type { Usage } from "../domain/usage.ts"
import type { ModelsOptions } from "./service.ts"

/** A transient failure (429, 529, 5xx, network): try again, after `retryAfterMs` where the service said so (capped at 60,000). */
export class ModelTransient extends Schema.TaggedError<ModelTransient>()("ModelTransient", {
  model: Schema.String,
  reason: Schema.Literal("rate_limited", "overloaded", "server_error", "network", "truncated"),
  status: Schema.NullOr(Schema.Int),
  retryAfterMs: Schema.NullOr(Schema.Int),
  detail: Schema.String,
}) {
  override get message() {
    return `${this.model}: ${this.detail}`
  }
}

/** The context does not fit the model's window: compact and retry once. */
export class ContextOverflow extends Schema.TaggedError<ContextOverflow>()("ContextOverflow", {
  model: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.model}: the context is too long: ${this.detail}`
  }
}

/** The service refused for good; `detail` is its own message. */
export class ModelRejected extends Schema.TaggedError<ModelRejected>()("ModelRejected", {
  model: Schema.String,
  status: Schema.NullOr(Schema.Int),
  detail: Schema.String,
}) {
  override get message() {
    return `${this.model}: ${this.detail}`
  }
}

/** No provider serves that name. `known` are names that would work, nearest first. */
export class ModelNotFound extends Schema.TaggedError<ModelNotFound>()("ModelNotFound", {
  model: Schema.String,
  known: Schema.Array(Schema.String),
}) {
  override get message() {
    const near = this.known.slice(0, 5).join(", ")
    return `model "${this.model}" is served by no provider${near === "" ? "" : `; known: ${near}`}. See: super-pi models`
  }
}

/** The provider of that model has no key; `variables` are those that would give one. Both names are "" when nothing is configured at all. */
export class ProviderNotConfigured extends Schema.TaggedError<ProviderNotConfigured>()("ProviderNotConfigured", {
  provider: Schema.String,
  model: Schema.String,
  variables: Schema.Array(Schema.String),
  detail: Schema.optional(Schema.String),
}) {
  override get message() {
    const todo = this.detail ?? `set ${this.variables.join(" or ")}`
    if (this.provider === "") return `no model provider is configured: ${todo}`
    return `provider "${this.provider}" (model "${this.model}") is not configured: ${todo}`
  }
}

export const ModelError = Schema.Union(
  ModelTransient,
  ContextOverflow,
  ModelRejected,
  ModelNotFound,
  ProviderNotConfigured,
)
export type ModelError = typeof ModelError.Type

/** One request. `messages` is the derived context; system messages in it carry sections and tool changes. */
export interface ModelRequest {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  readonly effort?: Effort
  readonly maxOutputTokens?: number
  /** Stable per conversation, for the provider's prompt cache. */
  readonly sessionId?: string
  /** Header of W3C Trace Context, for services that take part in the trace. */
  readonly traceparent?: string
}

/** What a response streams. The last part is `finish`, exactly once; a stream that ends without it fails as `truncated`. */
export type ModelPart =
  | { readonly type: "text"; readonly delta: string }
  | { readonly type: "thinking"; readonly delta: string }
  | { readonly type: "toolCallDelta"; readonly id: string; readonly name: string; readonly delta: string }
  | {
      readonly type: "finish"
      /** The whole content in order, thinking signatures and provider metadata included. */
      readonly content: ReadonlyArray<AssistantPart>
      readonly stopReason: StopReason
      readonly usage: Usage
    }

/** Takes parts as they come; suspends to hold the response back. */
export type PartSink = (parts: ReadonlyArray<ModelPart>) => Effect.Effect<void>

/** What is known of a model. */
export interface ModelInfo {
  /** `provider/model`. */
  readonly id: string
  readonly provider: string
  readonly name: string
  /** Tokens of the whole context window, when known. */
  readonly contextWindow: number | null
  readonly images: boolean
  readonly thinking: boolean
  readonly isDefault: boolean
  /** Plugins choose no other model in its place. Default false. */
  readonly fixed?: boolean
}

/** One model service. */
export interface ModelProvider {
  readonly id: string
  /** Answers to full names only: never listed, never a default (`mock`, `script`). */
  readonly onlyByName?: boolean
  /** Whether this provider serves the name (with or without its own prefix). Pure. */
  readonly handles: (model: string) => boolean
  /** The plain name sent on the wire. */
  readonly wireName: (model: string) => string
  /** Environment names that configure it. */
  readonly variables: ReadonlyArray<string>
  readonly configured: Effect.Effect<boolean>
  readonly defaultModel: string
  readonly models: Effect.Effect<ReadonlyArray<ModelInfo>, ModelError>
  readonly info: (model: string) => ModelInfo
  readonly stream: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  /** The same parts, pushed: for a provider that has them at hand, at a fraction of a stream's cost. Default: from `stream`. */
  readonly respond?: (request: ModelRequest, sink: PartSink) => Effect.Effect<void, ModelError>
}

export interface ModelsService {
  /** The `provider/model` that a name stands for; an error when nobody serves it or its provider has no key. Never a fallback. */
  readonly resolve: (model: string) => Effect.Effect<ModelInfo, ModelNotFound | ProviderNotConfigured>
  /** `--model`, then `SUPER_PI_DEFAULT_MODEL`, then the settings file, then the configured provider's default. */
  readonly defaultModel: Effect.Effect<string, ProviderNotConfigured>
  readonly stream: (request: ModelRequest) => Stream.Stream<ModelPart, ModelError>
  /** The parts of a response pushed into `sink`; done when the response is. */
  readonly respond: (request: ModelRequest, sink: PartSink) => Effect.Effect<void, ModelError>
  /** Models of the configured providers. */
  readonly list: Effect.Effect<ReadonlyArray<ModelInfo>>
  readonly providers: ReadonlyArray<ModelProvider>
}

/** The models that this node can ask. */
export class Models extends Context.Tag("super-pi/Models")<Models, ModelsService>() {
  /** The built-in providers, set up from plain values. Touches neither network nor disk; an SDK is loaded at its first request. */
  static readonly layer = (options: ModelsOptions): Layer.Layer<Models> =>
    Layer.effect(
      Models,
      Effect.map(
        Effect.promise(() => import("./service.ts")),
        ({ makeModels }) => makeModels(options),
      ),
    )
}
