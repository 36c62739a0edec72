/**
 * The model context: the ten rules of `docs/context.md`, pure. The same entries give the same messages, so a provider's prompt cache
 * stays warm. `deriveContext` is the definition; `ContextState` gives the same result for a growing transcript at a flat cost
 * (property-tested against the definition).
 */
import { AppendLog } from "./append-log.ts"
import type { ContextEdit, Entry } from "./entry.ts"
import type { EntryId } from "./ids.ts"
import type { Message, ToolResultMessage } from "./message.ts"
import { toolCallsOf } from "./message.ts"
import type { Prompt } from "./prompt.ts"
import { applySystem, promptOf } from "./prompt.ts"

/** What the rules look at in an entry, and what a compaction reads of it where it is there. */
export type ContextEntry = Pick<Entry, "id" | "model" | "head" | "edits"> &
  Partial<Pick<Entry, "kind" | "data" | "task">>

/** What a call without a result gets (rule 8). */
export const missingResultText = "The call has no result: it was interrupted or its result was lost."

/** Rules 1 and 2: the newest entry with a head, and what is visible from there on. `visible` is in transcript order. */
export const rangeOf = (
  visible: ReadonlyArray<ContextEntry>,
): { readonly head: ContextEntry | null; readonly range: ReadonlyArray<ContextEntry> } => {
  const at = visible.findLastIndex((entry) => entry.head !== null)
  const head = visible[at]
  if (head === undefined) return { head: null, range: visible }
  const from = visible.findIndex((entry) => entry.id === head.head)
  return { head, range: from < 0 ? visible.slice(at) : visible.slice(from) }
}

/** Rules 1, 2, 3, 5: the entries that make the context, the head entry first. `visible` is in transcript order. */
export const selectEntries = (visible: ReadonlyArray<ContextEntry>): ReadonlyArray<ContextEntry> => {
  const { head, range } = rangeOf(visible)
  return head === null ? range : [head, ...range.filter((entry) => entry.head === null)]
}

/** Rule 4: the newest edit of each target, and the entry that carries it, among some entries. */
export const newestEdits = (
  entries: ReadonlyArray<ContextEntry>,
): ReadonlyMap<EntryId, { readonly by: EntryId; readonly edit: ContextEdit }> => {
  const edits = new Map<EntryId, { readonly by: EntryId; readonly edit: ContextEdit }>()
  for (const entry of entries) {
    for (const edit of entry.edits) {
      const before = edits.get(edit.entry)
      if (before === undefined || before.by <= entry.id) edits.set(edit.entry, { by: entry.id, edit })
    }
  }
  return edits
}

/** What stands in place of each edited entry's messages. */
export const editsOf = (entries: ReadonlyArray<ContextEntry>): ReadonlyMap<EntryId, ReadonlyArray<Message>> =>
  new Map([...newestEdits(entries)].map(([target, { edit }]) => [target, edit.type === "replace" ? edit.model : []]))

/** Rule 9: whether a message may reach a model again. */
const reachesModel = (message: Message): boolean =>
  message.role !== "assistant" ||
  (message.stopReason !== "aborted" && message.stopReason !== "error" && message.stopReason !== "deferred")

/** The error result of a call that has none. */
export const missingResult = (callId: string, toolName: string): ToolResultMessage => ({
  role: "tool",
  callId,
  toolName,
  content: [{ type: "text", text: missingResultText }],
  isError: true,
})

/** Rules 7 and 8: every assistant message is followed by exactly its results, in call order. */
export const pairResults = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  // Results by call id, oldest first, with their position: a call takes the first one behind it.
  const results = new Map<string, Array<{ readonly at: number; readonly message: ToolResultMessage }>>()
  messages.forEach((message, at) => {
    if (message.role !== "tool") return
    const known = results.get(message.callId)
    if (known === undefined) results.set(message.callId, [{ at, message }])
    else known.push({ at, message })
  })
  const out: Array<Message> = []
  messages.forEach((message, at) => {
    if (message.role === "tool") return
    out.push(message)
    if (message.role !== "assistant") return
    for (const call of toolCallsOf(message)) {
      const waiting = results.get(call.id) ?? []
      const found = waiting.findIndex((result) => result.at > at)
      if (found < 0) out.push(missingResult(call.id, call.name))
      else out.push(...waiting.splice(found, 1).map((result) => result.message))
    }
  })
  return out
}

/** Rule 10: system messages that only user messages precede move to the front, in their order. */
const leadWithSystem = (messages: ReadonlyArray<Message>): ReadonlyArray<Message> => {
  const end = messages.findIndex((message) => message.role !== "user" && message.role !== "system")
  const opening = end < 0 ? messages : messages.slice(0, end)
  if (!opening.some((message, at) => message.role === "system" && at > 0 && opening[at - 1]?.role === "user")) {
    return messages
  }
  return [
    ...opening.filter((message) => message.role === "system"),
    ...opening.filter((message) => message.role === "user"),
    ...messages.slice(opening.length),
  ]
}

/** The messages of selected entries before pairing (rules 4, 6, 9). */
export const messagesOf = (
  entries: ReadonlyArray<ContextEntry>,
  edits: ReadonlyMap<EntryId, ReadonlyArray<Message>>,
): ReadonlyArray<Message> => {
  const out: Array<Message> = []
  for (const entry of entries) {
    for (const message of edits.get(entry.id) ?? entry.model) if (reachesModel(message)) out.push(message)
  }
  return out
}

/** Rules 1 to 6 and 9. An edit counts wherever in the range it is, also on an older head, which itself is left out. */
const selectedMessages = (visible: ReadonlyArray<ContextEntry>): ReadonlyArray<Message> =>
  messagesOf(selectEntries(visible), editsOf(rangeOf(visible).range))

/**
 * The context of visible entries (transcript order, fork ancestors included and capped, cutoff applied).
 * Never throws; the same entries give an equal result.
 */
export const deriveContext = (visible: ReadonlyArray<ContextEntry>): ReadonlyArray<Message> => {
  return leadWithSystem(pairResults(selectedMessages(visible)))
}

/**
 * A derived context that grows. `settled` are messages that no later plain entry can change; `tail` are the entries since, at most
 * one batch of calls in flight. While nothing is settled the tail is the whole transcript.
 */
export interface ContextState {
  readonly entries: AppendLog<ContextEntry>
  readonly settled: AppendLog<Message>
  readonly tail: ReadonlyArray<ContextEntry>
  /** The prompt in force at the end. */
  readonly prompt: Prompt
}

const noEdits: ReadonlyMap<EntryId, ReadonlyArray<Message>> = new Map()

/** Whether every call has its result. Of several calls with one id each takes one. */
const isSettled = (messages: ReadonlyArray<Message>): boolean => {
  const open = new Map<string, number>()
  for (const message of messages) {
    if (message.role === "assistant") {
      for (const call of toolCallsOf(message)) open.set(call.id, (open.get(call.id) ?? 0) + 1)
    }
    const waiting = message.role === "tool" ? (open.get(message.callId) ?? 0) : 0
    if (message.role !== "tool" || waiting === 0) continue
    if (waiting === 1) open.delete(message.callId)
    else open.set(message.callId, waiting - 1)
  }
  return open.size === 0
}

/** Starts from visible entries. */
export const contextState = (visible: ReadonlyArray<ContextEntry>): ContextState => derive(AppendLog.from(visible))

const derive = (entries: AppendLog<ContextEntry>): ContextState => {
  const visible = entries.slice()
  const messages = deriveContext(visible)
  const plain = selectedMessages(visible)
  // Calls in flight, or an opening that a system message may still lead: keep it whole and derive anew.
  const settles = isSettled(plain) && plain.some((message) => message.role === "assistant")
  return settles
    ? { entries, settled: AppendLog.from(messages), tail: [], prompt: promptOf(messages) }
    : { entries, settled: AppendLog.from<Message>([]), tail: visible, prompt: promptOf(messages) }
}

/** Adds one entry behind all others. */
export const appendEntry = (state: ContextState, entry: ContextEntry): ContextState => {
  const entries = state.entries.append([entry])
  // A head, an edit, or a tail that still is the whole transcript: the definition decides.
  if (entry.head !== null || entry.edits.length > 0 || state.settled.length === 0) return derive(entries)
  const tail = [...state.tail, entry]
  const messages = messagesOf(tail, noEdits)
  const prompt = entry.model.reduce(
    (before, message) => (message.role === "system" ? applySystem(before, message) : before),
    state.prompt,
  )
  return isSettled(messages)
    ? { entries, settled: state.settled.append(pairResults(messages)), tail: [], prompt }
    : { entries, settled: state.settled, tail, prompt }
}

/** The messages of the tail: behind those that are settled. */
export const tailOf = (state: ContextState): ReadonlyArray<Message> => {
  if (state.tail.length === 0) return []
  return state.settled.length === 0 ? deriveContext(state.tail) : pairResults(messagesOf(state.tail, noEdits))
}

/** The context of the entries so far: equal to `deriveContext` of them. */
export const contextOf = (state: ContextState): ReadonlyArray<Message> => [...state.settled.slice(), ...tailOf(state)]
