/**
 * The first row of a task. Pure.
 */
import type { TaskRow } from "./board.ts"

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
