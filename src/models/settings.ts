/**
 * The `models` section of the settings file. Decoded once at the boundary; every field is optional and a list or map that is given
 * replaces its default as a whole.
 */
import { Schema } from "effect"
import { Price } from "../domain/budget.ts"
import { Effort } from "../domain/document.ts"

const Names = Schema.Array(Schema.NonEmptyString)
const PositiveInt = Schema.Int.pipe(Schema.positive())

/** What is known of one model beyond the built-in table, keyed by `provider/model` in {@link ModelSettings}. */
const ModelOverride = Schema.Struct({
  /** Tokens. */
  contextWindow: Schema.optional(PositiveInt),
  /** Tokens of one answer. */
  maxOutputTokens: Schema.optional(PositiveInt),
  images: Schema.optional(Schema.Boolean),
  thinking: Schema.optional(Schema.Boolean),
})

export const ModelSettings = Schema.Struct({
  /** The model of conversations that choose none. `--model` and `SUPER_PI_DEFAULT_MODEL` come first. */
  defaultModel: Schema.optional(Schema.NonEmptyString),
  geminiBaseUrl: Schema.optional(Schema.NonEmptyString),
  geminiModels: Schema.optional(Names),
  anthropicBaseUrl: Schema.optional(Schema.NonEmptyString),
  anthropicModels: Schema.optional(Names),
  /** Tokens of one answer, thinking not included; default 8192. */
  anthropicMaxTokens: Schema.optional(PositiveInt),
  /** The `anthropic-version` header. */
  anthropicVersion: Schema.optional(Schema.NonEmptyString),
  openaiBaseUrl: Schema.optional(Schema.NonEmptyString),
  openaiModels: Schema.optional(Names),
  /** Tokens of one answer; absent leaves it to the service. */
  openaiMaxTokens: Schema.optional(PositiveInt),
  /** Models asked through `/responses`; default `gpt-6-astra`. */
  openaiResponsesModels: Schema.optional(Names),
  /** `reasoning_effort` by wire name, where the conversation sets no effort; default `{"gpt-6-sol": "none"}`. */
  openaiReasoningEffort: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.NonEmptyString })),
  /** Summaries of reasoning asked of `/responses`, which shows them as thinking; default `auto`. */
  openaiReasoningSummary: Schema.optional(Schema.Literal("auto", "concise", "detailed", "none")),
  /** How long the auth command may take, in milliseconds; default 10,000. */
  openaiAuthTimeoutMs: Schema.optional(PositiveInt),
  /** How long a token is kept, in milliseconds; default 60,000, 0 disables the cache. */
  openaiAuthCacheTtlMs: Schema.optional(Schema.NonNegativeInt),
  /** A stream without a byte for this long fails as transient, in milliseconds; default 120,000. */
  streamIdleTimeoutMs: Schema.optional(PositiveInt),
  /** The effort of conversations that choose none. */
  effort: Schema.optional(Effort),
  /** Facts about single models by `provider/model`. */
  overrides: Schema.optional(Schema.Record({ key: Schema.String, value: ModelOverride })),
  /** US dollars per million tokens by `provider/model`, for budgets with a `maxCost`; see docs/subagents.md. */
  prices: Schema.optional(Schema.Record({ key: Schema.String, value: Price })),
})
export type ModelSettings = typeof ModelSettings.Type

/** Environment variables by name, as a plain record. Empty values count as unset. */
export type Env = Readonly<Record<string, string | undefined>>

/** A variable's value, or undefined where it is unset or empty. */
export const envValue = (env: Env, name: string): string | undefined => {
  const value = env[name]
  return value === undefined || value.trim() === "" ? undefined : value
}
