/**
 * The decision trail of a tool call: which plugin said what about it, in order. It is stored with the call: what was decided before it ran
 * in its intent, all of it with its result.
 */
import { Option, Schema } from "effect"
import type { Json } from "./json.ts"

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

const Data = Schema.Struct({ trail: Schema.Array(TrailStep) })
const decode = Schema.decodeUnknownOption(Data)

/** What a result entry carries where plugins said something; null otherwise. */
export const trailData = (trail: ReadonlyArray<TrailStep> | undefined): Json =>
  trail === undefined || trail.length === 0 ? null : { trail: trail.map((step) => ({ ...step })) }

/** The trail in the data of an entry, or in the input of a call. */
export const trailIn = (data: unknown): ReadonlyArray<TrailStep> =>
  Option.match(decode(data), { onNone: () => [], onSome: ({ trail }) => trail })
