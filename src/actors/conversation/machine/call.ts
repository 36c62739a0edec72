/**
 * A call as it begins, of the model or of an input: its task with the intent, and the slot that follows it.
 */
import { type CallInput, effectIdOf } from "../../../domain/effect.ts"
import type { TaskId } from "../../../domain/ids.ts"
import { isJsonObject } from "../../../domain/json.ts"
import type { ToolCallPart } from "../../../domain/message.ts"
import { TaskKind } from "../../../domain/task.ts"
import { uuidv7 } from "../../../domain/uuid.ts"
import type { CallSlot, TaskRow, Verdict } from "./data.ts"
import type { Draft } from "./draft.ts"

/** Puts the task of a call that may run into the draft. Only a `running` one is taken by this node. */
export const newCall = (
  d: Draft,
  call: ToolCallPart,
  verdict: Extract<Verdict, { readonly type: "run" }>,
  owner: TaskId | null,
  status: "asking" | "pending" | "running",
): CallSlot => {
  const { args, replay, trail, whenInterrupted = "settled" } = verdict
  const effect = uuidv7(d.env.now, d.env.random)
  const input: CallInput = {
    callId: call.id,
    name: call.name,
    arguments: args,
    replay,
    effect,
    ...(whenInterrupted === "settled" ? {} : { whenInterrupted }),
    ...(trail === undefined ? {} : { trail }),
  }
  const task = d.newTask(TaskKind.tool, { ...input }, null, owner, status === "running")
  const startedAt = d.env.now
  const slot: CallSlot = { task, call, args, replay, effect, whenInterrupted, output: "", status, startedAt }
  return trail === undefined ? slot : { ...slot, trail }
}

/** A call as an earlier life of the actor left it. */
export const storedCall = (task: TaskRow, input: CallInput, status: CallSlot["status"], now: number): CallSlot => ({
  task,
  call: {
    type: "toolCall",
    id: input.callId,
    name: input.name,
    arguments: isJsonObject(input.arguments) ? input.arguments : {},
  },
  args: input.arguments,
  replay: input.replay,
  effect: effectIdOf(task, input),
  whenInterrupted: input.whenInterrupted ?? "settled",
  status,
  output: "",
  startedAt: task.startedAt ?? now,
  ...(input.trail === undefined ? {} : { trail: input.trail }),
})
