/**
 * Subagents that a process left: each goes on in its own conversation, which recovers by itself; its parent queues a new job for it, under a
 * higher number, and parks again. A cancel that was under way is finished.
 */
import { Schema } from "effect"
import { SubagentCheckpoint, SubagentInput } from "../../../domain/subagent.ts"
import { type Task, TaskKind } from "../../../domain/task.ts"
import { checkpointOf, stopChildren, subagentJob } from "./children.ts"
import type { Child, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"

const decodeInput = Schema.decodeUnknownOption(SubagentInput)
const decodeCheckpoint = Schema.decodeUnknownOption(SubagentCheckpoint)

/** The open subagents of a generation, those that cannot be read ended as faulted. The machine has its run. */
export const recoverChildren = (d: Draft, tasks: ReadonlyArray<Task>, generation: TaskRow): void => {
  const open = tasks.filter((task) => task.kind === TaskKind.subagent && task.owner === generation.id)
  if (open.length === 0) return
  const children = open.flatMap((stored): ReadonlyArray<Child> => {
    const input = decodeInput(stored.input)
    const checkpoint = decodeCheckpoint(stored.checkpoint)
    const task: TaskRow = { ...stored, status: "pending", node: null, fence: d.env.fence }
    if (input._tag === "None" || checkpoint._tag === "None") {
      d.endTask(task, { status: "faulted", error: "the task cannot be read" })
      return []
    }
    if (stored.abortRequested || d.run.cancelling) return [{ task, input: input.value, job: checkpoint.value.job }]
    const job = checkpoint.value.job + 1
    d.addJob(subagentJob(d, task.id, job))
    return [{ task: d.putTask({ ...task, checkpoint: checkpointOf(job) }), input: input.value, job }]
  })
  const { waitingOn } = generation
  const on = children.map(({ task }) => task.id)
  const policy = waitingOn?.policy ?? "allSettled"
  d.patchRun({
    children,
    generation: d.putTask({ ...d.run.generation, waitingOn: on.length === 0 ? null : { on, policy } }),
  })
  if (d.run.cancelling) stopChildren(d)
  else {
    const stopping = children.filter(({ task }) => task.abortRequested)
    if (stopping.length > 0) d.act({ type: "stopChildren", children: stopping })
  }
}
