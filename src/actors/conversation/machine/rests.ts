/**
 * Whether a conversation only waits: for an input, for a time, for subagents. Stopped then it loses nothing. Pure.
 */
import type { MachineState } from "../../../domain/event.ts"
import type { Data } from "./data.ts"

/** States in which nothing is done. */
const resting: ReadonlySet<MachineState> = new Set<MachineState>(["idle", "sleeping_backoff", "awaiting_children"])

export const rests = ({ compactions, inputCalls = [], reading = [], state }: Data): boolean =>
  resting.has(state) && compactions.length + inputCalls.length + reading.length === 0
