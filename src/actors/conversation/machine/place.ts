/**
 * Boundaries: where what is queued takes its place in the transcript. Rules (docs/conversation.md, *Boundaries*):
 * 1. After the calls of a turn every queued write is placed and the steers join. When a run ends with an answer, follow-ups too.
 * 2. Writes come first, then inputs, each in the order in which they were handed over: an input that was queued before a reset
 *    belongs to the new context.
 * 3. An input that asks no model ends where it is placed; it does not count for the next rule.
 * 4. Of steers and of follow-ups the oldest one is taken, or every one: `steeringMode`, `followUpMode` of `pi.agent`.
 * 5. A write whose head lies before the present context is stale: it ends without an entry.
 */
import { DocumentKind, type QueueMode } from "../../../domain/document.ts"
import type { Entry } from "../../../domain/entry.ts"
import { EntryKind } from "../../../domain/entry.ts"
import type { Json } from "../../../domain/json.ts"
import type { UserPart } from "../../../domain/message.ts"
import { textOf } from "../../../domain/message.ts"
import { changedAgent } from "../../../domain/subagent.ts"
import type { EntryDraft, InputEntry } from "../../../domain/write.ts"
import { withOutputs } from "../../../harness/command-outputs.ts"
import type { Unstamped } from "../../../storage/store.ts"
import type { SubmissionRow } from "./data.ts"
import type { Draft } from "./draft.ts"
import { type ReadInput, readOf, readyOf } from "./reading.ts"

/** Characters of a title taken from the first input. */
const titleLength = 80

/** What is stored of an input. */
export interface InputContent {
  readonly content: ReadonlyArray<UserPart>
  readonly entry?: InputEntry
  /** The `traceparent` that it belongs to. */
  readonly trace?: string
}

// This engine wrote both (admit.ts, write.ts).
export const inputOf = (row: SubmissionRow): InputContent => row.content as unknown as InputContent
const draftOf = (row: SubmissionRow): EntryDraft => row.content as unknown as EntryDraft // as above

/** Whether it is a write that begins a context of its own. */
export const isReset = (row: SubmissionRow): boolean => row.kind === "write" && draftOf(row).head === "self"

/** What is placed of an input: as it was given, or as the plugins left it. The choices that they change with it are changed here. */
const placedContent = (d: Draft, row: SubmissionRow): ReadonlyArray<UserPart> => {
  const read = readOf(row)
  if (read === null) return inputOf(row).content
  choose(d, read)
  return withOutputs(
    read.content,
    read.outputs.map((output) => output ?? ""),
  )
}

/** Makes the changes of `pi.agent` that come with an input. */
const choose = (d: Draft, read: ReadInput): void => {
  if (read.agent === null) return
  const agent = changedAgent(d.data.agent, read.agent)
  const changed = agent.mode !== undefined && agent.mode !== d.data.agent.mode ? agent.mode : null
  d.patch({ agent })
  d.putDocument(DocumentKind.agent, { ...agent } as Json)
  if (changed !== null) d.publish({ type: "mode_changed", mode: changed })
}

/** Whether an input asks no model. */
const isCommand = (row: SubmissionRow): boolean => readOf(row)?.settles !== undefined

/** Ends an input that asks no model: its changes are made, and its entry is its answer. */
const placeCommand = (d: Draft, row: SubmissionRow): void => {
  const read = readOf(row)
  const settles = read?.settles
  if (read === null || settles === undefined) return
  choose(d, read)
  const entry = d.addEntry(EntryKind.command, [], null, { text: textOf(inputOf(row).content), said: settles })
  d.publish({ type: "notice", level: "info", message: settles })
  const end = { status: "done", detail: settles, entry: entry.id, answer: entry.id } as const
  d.act({ type: "settle", submission: d.putSubmission({ ...row, ...end }) })
}

/** Places an input as a user entry. */
export const placeInput = (d: Draft, row: SubmissionRow): SubmissionRow => {
  const { entry: shown } = inputOf(row)
  const content = placedContent(d, row)
  const kind = shown?.kind ?? EntryKind.user
  const entry = d.addEntry(kind, [{ role: "user", content }], null, shown?.data ?? null)
  if (d.data.conversation.title === null) {
    const first = textOf(content).trim().split("\n", 1)[0] ?? ""
    if (first !== "") d.setTitle(first.slice(0, titleLength))
  }
  const placed = d.putSubmission({ ...row, status: "placed", entry: entry.id })
  d.publish({ type: "message_completed", entry_id: entry.id, role: "user", content, stop_reason: null })
  return placed
}

/** The oldest entry that a head may name: what lies before it was cut off by the newest head. */
const contextStart = (d: Draft): number => {
  const { entries } = d.data.context
  for (let at = entries.length - 1; at >= 0; at--) {
    const head = entries.at(at)?.head
    if (head !== null && head !== undefined) return head
  }
  return 0
}

/** Appends a written entry, and tells watchers where a new context begins. */
export const appendDraft = (d: Draft, draft: EntryDraft, task: Entry["task"]): Unstamped<Entry> => {
  const entry = d.append(draft, task)
  if (draft.kind === EntryKind.reset) {
    d.publish({ type: "notice", level: "info", message: "a new context begins: what came before is not sent any more" })
  }
  return entry
}

/** Places a write and ends its submission. */
export const placeWrite = (d: Draft, row: SubmissionRow): SubmissionRow => {
  const draft = draftOf(row)
  if (typeof draft.head === "number" && draft.head < contextStart(d)) {
    const detail = `head: expected an entry of the present context, got entry ${draft.head}, which a newer head cut off`
    d.unanswered([row], "stale", detail)
    return { ...row, status: "unanswered", reason: "stale", detail }
  }
  const entry = appendDraft(d, draft, null)
  const done = d.putSubmission({ ...row, status: "done", entry: entry.id })
  d.act({ type: "settle", submission: done })
  return done
}

/** Places every queued write. Whether one of them began a new context. */
export const placeWrites = (d: Draft): boolean => {
  const writes = d.data.queue.filter((row) => row.kind === "write")
  if (writes.length === 0) return false
  d.setQueue(d.data.queue.filter((row) => row.kind !== "write"))
  for (const row of writes) placeWrite(d, row)
  return writes.some(isReset)
}

/** Every one, or those up to the first that asks a model. */
const taken = (rows: ReadonlyArray<SubmissionRow>, mode: QueueMode | undefined): ReadonlyArray<SubmissionRow> => {
  const at = mode === "all" ? -1 : rows.findIndex((row) => !isCommand(row))
  return at < 0 ? rows : rows.slice(0, at + 1)
}

/** Places the inputs whose turn it is: steers, and follow-ups where a run has ended. Gives those that ask a model. */
export const placeInputs = (d: Draft, boundary: "afterTools" | "final"): ReadonlyArray<SubmissionRow> => {
  const { agent, queue } = d.data
  const inputs = queue.filter((row) => row.kind === "input")
  if (inputs.length === 0) return []
  const steers = readyOf(
    d,
    inputs.filter((row) => row.whenBusy === "steer"),
  )
  const others =
    boundary === "final"
      ? readyOf(
          d,
          inputs.filter((row) => row.whenBusy !== "steer"),
        )
      : []
  const chosen = new Set([...taken(steers, agent.steeringMode), ...taken(others, agent.followUpMode)])
  if (chosen.size === 0) return []
  d.setQueue(queue.filter((row) => !chosen.has(row)))
  const asking: Array<SubmissionRow> = []
  for (const row of inputs) {
    if (!chosen.has(row)) continue
    if (isCommand(row)) placeCommand(d, row)
    else asking.push(placeInput(d, row))
  }
  return asking
}
