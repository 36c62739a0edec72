/**
 * Token counts of one model response, and their sums (document `pi.usage`).
 */
import { Schema } from "effect"

/** Tokens of one or more model responses. `cacheRead` and `cacheWrite` are part of `input`; `reasoning` is part of `output`. */
export const Usage = Schema.Struct({
  input: Schema.NonNegativeInt,
  output: Schema.NonNegativeInt,
  cacheRead: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
  cacheWrite: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
  reasoning: Schema.optionalWith(Schema.NonNegativeInt, { default: () => 0 }),
})
export type Usage = typeof Usage.Type

/** No tokens. */
export const noUsage: Usage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }

/** The sum of two usages. */
export const addUsage = (a: Usage, b: Usage): Usage => ({
  input: a.input + b.input,
  output: a.output + b.output,
  cacheRead: a.cacheRead + b.cacheRead,
  cacheWrite: a.cacheWrite + b.cacheWrite,
  reasoning: a.reasoning + b.reasoning,
})
