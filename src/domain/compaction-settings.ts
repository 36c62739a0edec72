/**
 * When a conversation is compacted, how, and how much stays: the settings, what one model makes of them, and the limits that follow from
 * its context window. Pure.
 */
import { Schema } from "effect"

/** How the older part of a context becomes short; see `docs/compaction.md`. */
export const CompactionMode = Schema.Literal("summary", "truncate", "tool_results", "hybrid")
export type CompactionMode = typeof CompactionMode.Type

/** What was done in the end: `hybrid` decides for one of the others. */
export const CompactionMethod = Schema.Literal("summary", "truncate", "tool_results")
export type CompactionMethod = typeof CompactionMethod.Type

/** Why a compaction was started. The next request waits for `threshold` and `overflow`. */
export const CompactionReason = Schema.Literal("manual", "threshold", "background", "overflow")
export type CompactionReason = typeof CompactionReason.Type

const fields = {
  /** Automatic compaction; a manual one always works. Default true. */
  enabled: Schema.optional(Schema.Boolean),
  /** Above `contextWindow - reserveTokens` the next request waits for a compaction. Default 16,384. */
  reserveTokens: Schema.optional(Schema.NonNegativeInt),
  /** About as many tokens of recent context stay word for word. Default 20,000. */
  keepRecentTokens: Schema.optional(Schema.NonNegativeInt),
  /** So far below the blocking limit a compaction starts beside the work; 0 disables it. Default 32,768. */
  backgroundTokens: Schema.optional(Schema.NonNegativeInt),
  /** Default `hybrid`. */
  mode: Schema.optional(CompactionMode),
  /** The model that writes summaries; default the conversation's own. */
  model: Schema.optional(Schema.NonEmptyString),
}

/** The `compaction` section of the settings; every field is optional. */
export const CompactionSettings = Schema.Struct({
  ...fields,
  /** By exact `provider/model` of the conversation: each field set here replaces the one above. */
  modelOverrides: Schema.optional(Schema.Record({ key: Schema.String, value: Schema.Struct(fields) })),
})
export type CompactionSettings = typeof CompactionSettings.Type

/** The settings as they count for one model. */
export interface CompactionRules {
  readonly enabled: boolean
  readonly reserveTokens: number
  readonly keepRecentTokens: number
  readonly backgroundTokens: number
  readonly mode: CompactionMode
  /** Null: the conversation's own model. */
  readonly model: string | null
}

/** The settings for `model` (a full `provider/model`). */
export const rulesFor = (settings: CompactionSettings, model: string): CompactionRules => {
  const own = settings.modelOverrides?.[model] ?? {}
  return {
    enabled: own.enabled ?? settings.enabled ?? true,
    reserveTokens: own.reserveTokens ?? settings.reserveTokens ?? 16_384,
    keepRecentTokens: own.keepRecentTokens ?? settings.keepRecentTokens ?? 20_000,
    backgroundTokens: own.backgroundTokens ?? settings.backgroundTokens ?? 32_768,
    mode: own.mode ?? settings.mode ?? "hybrid",
    model: own.model ?? settings.model ?? null,
  }
}

/** Tokens of a context window that nobody knows. */
export const unknownWindow = 128_000

/** Token counts for one model. */
export interface CompactionLimits {
  /** Above it the next request waits. */
  readonly blockAt: number
  /** Above it a compaction starts beside the work; null where that is disabled. */
  readonly backgroundAt: number | null
  /** About as much stays word for word. */
  readonly keep: number
  /** What stays word for word where a single step is larger than `keep`; beyond it, nothing does. */
  readonly most: number
  /** Below it a context counts as small enough again. */
  readonly target: number
}

/**
 * The limits for a context window of `window` tokens. Counts that do not fit a small window are cut: the reserve to half of it, what is
 * kept to a third of the rest, and background work starts at half of the rest at the earliest.
 */
export const limitsFor = (rules: CompactionRules, window: number | null): CompactionLimits => {
  const whole = window ?? unknownWindow
  const blockAt = whole - Math.min(rules.reserveTokens, Math.floor(whole / 2))
  const backgroundAt =
    rules.backgroundTokens === 0 ? null : Math.max(Math.floor(blockAt / 2), blockAt - rules.backgroundTokens)
  return {
    blockAt,
    backgroundAt,
    keep: Math.min(rules.keepRecentTokens, Math.floor(blockAt / 3)),
    most: Math.floor(blockAt / 2),
    target: backgroundAt ?? Math.floor((blockAt * 3) / 4),
  }
}
