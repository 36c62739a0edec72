/**
 * Inputs that plugins read before they are placed (`onInput`). Rules:
 * 1. Where a plugin has the hook, an input waits in the queue until it was read; one that was not holds up those behind it.
 * 2. What the plugins made of it is committed with the placing, or with the intent of the commands that they ask for. A death before that has
 *    it read again.
 * 3. Its commands are calls of `bash`: their intent is committed, they run once, and one that was cut off is not repeated. One that a person
 *    has to allow waits for the answer first (`question.ts`). The input is placed when all have ended, with their outputs in it.
 * 4. One that only changes choices asks no model: it takes its place in its turn, as a note, and is done.
 * 5. Withdrawing an input ends its commands: what was not allowed yet at once, what runs when it has stopped.
 */
import type { AgentDocument } from "../../../domain/document.ts"
import type { SubmissionId, TaskId } from "../../../domain/ids.ts"
import type { UserPart } from "../../../domain/message.ts"
import type { InputCall, SubmissionRow } from "./data.ts"
import type { Draft } from "./draft.ts"

/** What the plugins made of an input. `outputs` are those of its commands, null while one runs. */
export interface ReadInput {
  readonly content: ReadonlyArray<UserPart>
  readonly agent: AgentDocument | null
  readonly outputs: ReadonlyArray<string | null>
  readonly tasks: ReadonlyArray<TaskId | null>
  readonly maxBytes: ReadonlyArray<number>
  /** It asks no model: what is told when it takes its place. Absent: it does. */
  readonly settles?: string
}

/** What plugins made of a queued input, where that is stored; this engine wrote it. */
export const readOf = (row: SubmissionRow): ReadInput | null =>
  (row.content as unknown as { readonly read?: ReadInput }).read ?? null // see above

const reads = (d: Draft): boolean => d.env.hooks?.has("onInput") === true

/** Whether a queued row may take its place. */
export const isReady = (d: Draft, row: SubmissionRow): boolean => {
  if (row.kind === "write") return true
  const read = readOf(row)
  return read === null ? !reads(d) : read.outputs.every((output) => output !== null)
}

/** The rows up to the first that is not ready. */
export const readyOf = (d: Draft, rows: ReadonlyArray<SubmissionRow>): ReadonlyArray<SubmissionRow> => {
  const at = rows.findIndex((row) => !isReady(d, row))
  return at < 0 ? rows : rows.slice(0, at)
}

const readingIn = (d: Draft): ReadonlyArray<SubmissionId> => d.data.reading ?? []

/** Commands of inputs that have not ended. */
export const commandsOf = (d: Draft): ReadonlyArray<InputCall> => d.data.inputCalls ?? []

/** Whether a command of an input that was withdrawn is still being stopped. */
export const commandsStopping = (d: Draft): boolean => commandsOf(d).some(({ slot }) => slot.task.abortRequested)

/** Has the plugins read what is queued and was not read. */
export const readQueue = (d: Draft): void => {
  if (!reads(d)) return
  for (const row of d.data.queue) {
    if (row.kind !== "input" || readOf(row) !== null || readingIn(d).includes(row.id)) continue
    d.patch({ reading: [...readingIn(d), row.id] })
    d.act({ type: "readInput", row })
  }
}

/** It was read, or its job ended without a word. */
export const doneReading = (d: Draft, id: SubmissionId): void => {
  d.patch({ reading: readingIn(d).filter((one) => one !== id) })
}
