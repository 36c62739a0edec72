/**
 * The first row of a task, and the row that a clean stop leaves. Pure.
 */
import type { RunMode, TaskRow } from "./board.ts"

type Given = Pick<
  TaskRow,
  | "id"
  | "kind"
  | "version"
  | "input"
  | "checkpoint"
  | "conversation"
  | "owner"
  | "background"
  | "fence"
  | "requestId"
  | "createdAt"
>

export const freshRow = (given: Given): TaskRow => ({
  ...given,
  status: "pending",
  abortRequested: false,
  crashes: 0,
  parked: null,
  node: null,
  leaseUntil: null,
  wakeAt: null,
  waitingOn: null,
  outcome: null,
  inDoubt: false,
  startedAt: null,
  endedAt: null,
})

/** What a clean stop makes of a task that runs: its next start counts no crash. */
export const releasedRow = (row: TaskRow, mode: RunMode): TaskRow =>
  mode === "abort" ? { ...row, node: null } : { ...row, status: "pending", node: null }
