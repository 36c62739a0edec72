/**
 * External effects of tool calls: what is kept of one in its task, and what a person says about one in doubt.
 */
import { Option, Schema } from "effect"
import { Json } from "./json.ts"
import type { Task } from "./task.ts"
import { TaskKind } from "./task.ts"

/** What became of an effect in doubt: it happened, it did not, or nobody will find out and it is to be listed no more. */
export const EffectAnswer = Schema.Literal("happened", "not-happened", "ignore")
export type EffectAnswer = typeof EffectAnswer.Type

/** The durable input of a `pi.tool` task: the intent of a call, committed before it runs. */
export const CallInput = Schema.Struct({
  callId: Schema.String,
  name: Schema.String,
  /** Final, decoded arguments. */
  arguments: Json,
  replay: Schema.Literal("safe", "unsafe"),
  /** UUID: the durable id of the effect, the tool's idempotency key. Calls of older versions have none; see {@link effectIdOf}. */
  effect: Schema.optionalWith(Schema.String, { exact: true }),
  /** Whether it is in doubt when it is cancelled or its code breaks; absent: it is not. */
  whenInterrupted: Schema.optionalWith(Schema.Literal("settled", "inDoubt"), { exact: true }),
})
export type CallInput = typeof CallInput.Type

/** The checkpoint of a call in doubt that somebody settled. `at` in milliseconds since the epoch. */
export const EffectSettled = Schema.Struct({
  settled: Schema.Struct({ answer: EffectAnswer, at: Schema.Int }),
})
export type EffectSettled = typeof EffectSettled.Type

const decodeInput = Schema.decodeUnknownOption(CallInput)
const decodeSettled = Schema.decodeUnknownOption(EffectSettled)

/** The call that a task stands for, or null where it is no call. */
export const callOf = (task: Pick<Task, "kind" | "input">): CallInput | null =>
  task.kind === TaskKind.tool ? Option.getOrNull(decodeInput(task.input)) : null

/** The durable id of a call's effect. */
export const effectIdOf = (task: Pick<Task, "id">, input: Pick<CallInput, "effect">): string =>
  input.effect ?? `call-${task.id}`

/** What somebody said about a call, or null. */
export const settledAs = (task: Pick<Task, "checkpoint">): EffectSettled["settled"] | null =>
  Option.match(decodeSettled(task.checkpoint), { onNone: () => null, onSome: (found) => found.settled })
