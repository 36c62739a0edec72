/**
 * Events that came together: which of them are mere pieces of an answer, and how what they ask of the kernel is put together.
 */
import type { Action } from "../kernel/index.ts"
import type { MachineEvent } from "./machine/data.ts"
import type { ConversationMessage } from "./messages.ts"
import type { Change } from "./shell.ts"

/** Pieces of an answer: they are staged and published, and never commit. */
export const streamed: ReadonlySet<MachineEvent["type"]> = new Set(["text", "thinking", "callDelta"])

/** A change with actions before and behind its own. */
export const withActions = (
  change: Change,
  before: ReadonlyArray<Action<ConversationMessage>>,
  after: ReadonlyArray<Action<ConversationMessage>>,
): Change =>
  change._tag === "Next" || change._tag === "Keep"
    ? { ...change, actions: [...before, ...change.actions, ...after] }
    : change
