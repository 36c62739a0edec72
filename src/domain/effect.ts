/**
 * External effects of tool calls: what is kept of one in its task, and what a person says about one in doubt.
 */
import { Option, Schema } from "effect"
import { ConversationId, TaskId } from "./ids.ts"
import { Json } from "./json.ts"
import type { Task } from "./task.ts"
import { TaskKind } from "./task.ts"
import { TrailStep } from "./trail.ts"

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
  /** What plugins said of it before it ran. */
  trail: Schema.optionalWith(Schema.Array(TrailStep), { exact: true }),
})
export type CallInput = typeof CallInput.Type

/** The checkpoint of a call in doubt that somebody settled. `at` in milliseconds since the epoch. */
export const EffectSettled = Schema.Struct({
  settled: Schema.Struct({ answer: EffectAnswer, at: Schema.Int }),
})
export type EffectSettled = typeof EffectSettled.Type

/**
 * Where an effect stands. `running`: its call runs now; `cut_off`: its process ended and nobody has taken it up yet; `in_doubt`: its call is
 * over, and whether it happened is not known.
 */
export const EffectState = Schema.Literal("running", "cut_off", "in_doubt")
export type EffectState = typeof EffectState.Type

/** An unsafe effect as listings show it. Times in milliseconds since the epoch. */
export const EffectView = Schema.Struct({
  task_id: TaskId,
  conversation_id: Schema.NullOr(ConversationId),
  state: EffectState,
  tool: Schema.String,
  call_id: Schema.String,
  arguments: Json,
  /** The key under which the tool knows it. */
  effect_id: Schema.String,
  started_at: Schema.NullOr(Schema.Int),
  ended_at: Schema.NullOr(Schema.Int),
  /** Why it is in doubt, or null. */
  why: Schema.NullOr(Schema.String),
})
export type EffectView = typeof EffectView.Type

/** A task as a listing of effects shows it, or null where it is no call. */
export const effectView = (task: Task, state: EffectState): EffectView | null => {
  const call = callOf(task)
  if (call === null) return null
  const { outcome } = task
  const why = outcome?.status === "failed" && typeof outcome.error === "string" ? outcome.error : null
  return {
    task_id: task.id,
    conversation_id: task.conversation,
    state,
    tool: call.name,
    call_id: call.callId,
    arguments: call.arguments,
    effect_id: effectIdOf(task, call),
    started_at: task.startedAt,
    ended_at: task.endedAt,
    why: state === "cut_off" ? "its process ended while it ran, and nobody has taken it up yet" : why,
  }
}

/**
 * The unsafe effects among `inDoubt` and `open` tasks, newest first. `isOver` tells of a fence whether whoever took a task under it is gone: such
 * a task is cut off. `running` ones are given only where they are asked for.
 */
export const effectsAmong = (options: {
  readonly inDoubt: ReadonlyArray<Task>
  readonly open: ReadonlyArray<Task>
  readonly isOver: (fence: number) => boolean
  readonly running: boolean
}): ReadonlyArray<EffectView> => {
  const { inDoubt, isOver, open, running } = options
  const stateOf = (task: Task): EffectState | null => {
    if (task.status !== "running" || callOf(task)?.replay !== "unsafe") return null
    if (task.node === null || isOver(task.fence)) return "cut_off"
    return running ? "running" : null
  }
  return [
    ...open.map((task) => ({ task, state: stateOf(task) })),
    ...inDoubt.map((task) => ({ task, state: "in_doubt" as const })),
  ]
    .flatMap(({ state, task }) => (state === null ? [] : [effectView(task, state)]))
    .filter((view) => view !== null)
    .sort((a, b) => b.task_id - a.task_id)
}

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
