/**
 * What plugins do when a run has ended (`afterRun`). It is a `pi.after-run` task made in the commit that ends the run, so that no death loses it:
 * running → terminal, run again after a death (at least once). The conversation comes to rest when it has ended; inputs need not wait for it.
 */
import type { EntryId, TaskId } from "../../../domain/ids.ts"
import { restartLimit, TaskKind } from "../../../domain/task.ts"
import type { Data, Run, TaskRow } from "./data.ts"
import type { Draft } from "./draft.ts"

/** Input of the task: which run ended, how, and what was said and done in it. */
export interface AfterRunInput {
  readonly task: TaskId
  readonly outcome: "answered" | "failed" | "cancelled"
  /** The entry of the answer, or null. */
  readonly answer: EntryId | null
  /** Names of the tools that ran. */
  readonly tools: ReadonlyArray<string>
}

/** The input of a row that this engine wrote. */
export const afterRunOf = (row: Pick<TaskRow, "input">): AfterRunInput => row.input as unknown as AfterRunInput

/** Rows of this kind that have not ended. */
const afterRunsIn = (data: Data): ReadonlyArray<TaskRow> => data.afterRuns ?? []

/** Names of the tools that ran since the first input of the run: a call that was refused has no task of its own. */
const toolsOf = (d: Draft, run: Run): ReadonlyArray<string> => {
  const first = run.submissions[0]?.entry ?? run.generation.id
  const entries = d.data.context.entries.takeLastWhile((entry) => entry.id >= first)
  const generations = new Set(
    entries.flatMap(({ model, task }) => (model.some(({ role }) => role === "assistant") ? [task] : [])),
  )
  const names = entries.flatMap(({ model, task }) =>
    generations.has(task) ? [] : model.flatMap((message) => (message.role === "tool" ? [message.toolName] : [])),
  )
  return [...new Set(names)]
}

/** In the commit that ends the run, before it is taken out: what is left to do. */
export const leaveAfterRun = (d: Draft, outcome: AfterRunInput["outcome"], answer: EntryId | null): void => {
  if (d.env.hooks?.has("afterRun") !== true) return
  const { run } = d
  const input = { task: run.generation.id, outcome, answer, tools: toolsOf(d, run) }
  const row = d.newTask(TaskKind.afterRun, input, null, null)
  d.patch({ afterRuns: [...afterRunsIn(d.data), row] })
  d.act({ type: "afterRun", task: row })
}

/** Whether something is left to do before the conversation rests. */
export const leftToDo = (d: Draft): boolean => afterRunsIn(d.data).length > 0

/** It is done, or its job broke. True when it was the last. */
export const afterRunEnded = (d: Draft, id: TaskId, fault: string | null): boolean => {
  const row = afterRunsIn(d.data).find((one) => one.id === id)
  if (row === undefined) return false
  d.endTask(row, fault === null ? { status: "completed", result: null } : { status: "failed", error: fault })
  d.patch({ afterRuns: afterRunsIn(d.data).filter((one) => one.id !== id) })
  return !leftToDo(d)
}

/** Takes up what was left to do when the process died. */
export const recoverAfterRuns = (d: Draft, tasks: ReadonlyArray<TaskRow>, take: (task: TaskRow) => TaskRow): void => {
  for (const stored of tasks) {
    if (stored.kind !== TaskKind.afterRun || stored.status === "terminal") continue
    const row = take(stored)
    if (row.crashes >= restartLimit) {
      d.endTask(row, { status: "failed", error: `the process died ${row.crashes} times while plugins ended a run` })
      continue
    }
    const running = d.putTask({ ...row, status: "running" })
    d.patch({ afterRuns: [...afterRunsIn(d.data), running] })
    d.act({ type: "afterRun", task: running })
  }
}

/** A clean stop: it is taken up at the next start, and that counts no crash. */
export const releaseAfterRuns = (d: Draft): void => {
  for (const row of afterRunsIn(d.data)) d.putTask({ ...row, node: null })
}
