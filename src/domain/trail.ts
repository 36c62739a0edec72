/**
 * The decision trail of a tool call: which plugin said what about it, in order. It is stored with the call: what was decided before it ran
 * in its intent, all of it with its result.
 */
import { Schema } from "effect"

export const TrailStep = Schema.Struct({
  /** Name of the plugin; `mode` and `question` are the engine's own. */
  plugin: Schema.String,
  hook: Schema.Literal("beforeTool", "wrapTool", "afterTool"),
  /** What it said: `allow`, `block`, `ask`, `rewrite`, an answer to a question, `wrapped`, `changed`, or `failed`. */
  decision: Schema.String,
  /** What decided, for people: a rule's name. */
  rule: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String),
  /** Milliseconds since the epoch when it said so, and how long it took in ms. */
  at: Schema.Int,
  ms: Schema.NonNegativeInt,
})
export type TrailStep = typeof TrailStep.Type
