/**
 * A call as it begins, of the model or of an input: its task with the intent, and the slot that follows it.
 */
import type { CallInput } from "../../../domain/effect.ts"
import type { TaskId } from "../../../domain/ids.ts"
import type { ToolCallPart } from "../../../domain/message.ts"
import { TaskKind } from "../../../domain/task.ts"
import { uuidv7 } from "../../../domain/uuid.ts"
import type { CallSlot, Verdict } from "./data.ts"
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
