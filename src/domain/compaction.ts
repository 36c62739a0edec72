/**
 * Compaction: the older part of a context becomes short, the newer part stays word for word. Planning finds where to cut and how; placing
 * gives the entry that does it, against the context as it is by then. Pure; rules in `docs/compaction.md`.
 */
import { Schema } from "effect"
import { CompactionMethod, type CompactionMode } from "./compaction-settings.ts"
import { type ContextEntry, type ContextState, contextOf, newestEdits, selectEntries } from "./context.ts"
import { chooseCut, messagesByEntry, type Room } from "./cut-points.ts"
import type { ContextEdit } from "./entry.ts"
import { EntryKind } from "./entry.ts"
import { EntryId } from "./ids.ts"
import { isJsonObject, type Json } from "./json.ts"
import type { Message, UserPart } from "./message.ts"
import { text, textOf } from "./message.ts"
import { diffPrompt, emptyPrompt, promptOf } from "./prompt.ts"
import { contextTokens, estimateMessages } from "./token-estimate.ts"
import { toolStubs } from "./tool-stubs.ts"

/** Where a context is cut. It names entries, so that it means the same when the transcript has grown. */
export const Cut = Schema.Struct({
  /** The first entry that stays; null where nothing stays that was there when it was planned. */
  keep: Schema.NullOr(EntryId),
  /** The last entry of the older part. */
  last: EntryId,
  /** The head entry of the context that was cut, or null. */
  base: Schema.NullOr(EntryId),
})
export type Cut = typeof Cut.Type

export const CompactionPlan = Schema.Struct({
  cut: Cut,
  method: CompactionMethod,
  /** Tokens of the context when it was planned. */
  tokensBefore: Schema.NonNegativeInt,
})
export type CompactionPlan = typeof CompactionPlan.Type

/** What a plan may do. */
export interface PlanOptions extends Room {
  readonly mode: CompactionMode
  /** Below it, stubs alone are enough for `hybrid`, in tokens; null: never. */
  readonly target: number | null
  /** The older part that is too small to be worth it, as a part of the whole. */
  readonly leastGain: number
}

/** The entries of a context in its order, and where its head is. */
const selectedOf = (state: ContextState): ReadonlyArray<ContextEntry> => selectEntries(state.entries.slice())

/** The head entry of a context: it leads the others, and is behind every cut. */
const baseOf = (selected: ReadonlyArray<ContextEntry>): EntryId | null => {
  const first = selected[0]
  return first === undefined || first.head === null ? null : first.id
}

/** Finds what to do about a context; null when there is nothing to compact. */
export const planCompaction = (state: ContextState, options: PlanOptions): CompactionPlan | null => {
  const selected = selectedOf(state)
  const messages = messagesByEntry(selected)
  const estimated = messages.reduce((sum, list) => sum + estimateMessages(list), 0)
  const tokensBefore = contextTokens(state)
  // What the model counted may be more than the estimate: then every part of it is.
  const scale = Math.max(1, tokensBefore / Math.max(1, estimated))
  const at = chooseCut(messages, { keep: options.keep / scale, most: options.most / scale })
  if (at === null) return null
  const last = selected[at - 1]
  const base = baseOf(selected)
  if (last === undefined) return null
  const cut: Cut = { keep: selected[at]?.id ?? null, last: last.id, base }
  const plan = (method: CompactionMethod): CompactionPlan => ({ cut, method, tokensBefore })

  const stubs = toolStubs(selected, at)
  const saved = stubs.saved * scale
  const worth = (gain: number) => gain > 0 && gain >= options.leastGain * tokensBefore
  const byStubs = stubs.edits.length > 0 && worth(saved) ? plan("tool_results") : null
  if (options.mode === "tool_results") return byStubs
  if (
    options.mode === "hybrid" &&
    options.target !== null &&
    byStubs !== null &&
    tokensBefore - saved <= options.target
  ) {
    return byStubs
  }
  const older = messages.slice(base === null ? 0 : 1, at).flat()
  const said = older.filter((message) => message.role !== "system")
  if (said.length === 0 || !worth(estimateMessages(said) * scale)) return null
  return plan(options.mode === "truncate" ? "truncate" : "summary")
}

/** A position in the current context where a planned cut is now. */
interface Place {
  readonly selected: ReadonlyArray<ContextEntry>
  readonly at: number
}

/** Where a cut is in the context as it is now; null when it is stale: the context starts at it, or behind it. */
export const placeOf = (state: ContextState, cut: Cut): Place | null => {
  const selected = selectedOf(state)
  const found = selected.findIndex((entry) => entry.id === (cut.keep ?? cut.last))
  if (found < 0) return null
  const at = cut.keep === null ? found + 1 : found
  const base = baseOf(selected)
  return at < 1 || (base !== null && at < 2 && base !== cut.base) ? null : { selected, at }
}

/** An input of the run in progress. */
export interface Goal {
  readonly submission: number
  readonly entry: EntryId
  readonly content: ReadonlyArray<UserPart>
}

/** What a head carries over the cut word for word, whatever the summary says. */
export interface Carried {
  /** Inputs of the run in progress that are behind the cut. */
  readonly goal: ReadonlyArray<Goal>
  readonly handoff: string | null
  readonly todo: string | null
}

/** The newest handoff behind the head of a context: of a reset, or one that an earlier compaction carried. */
const handoffOf = (selected: ReadonlyArray<ContextEntry>): string | null => {
  const first = selected[0]
  if (first === undefined || first.head === null) return null
  if (first.kind === EntryKind.compaction) {
    const carried = isJsonObject(first.data) ? first.data.carried : undefined
    return isJsonObject(carried) && typeof carried.handoff === "string" ? carried.handoff : null
  }
  const words = first.model.flatMap((message) => (message.role === "user" ? [textOf(message.content)] : []))
  const handoff = words.join("\n").trim()
  return handoff === "" ? null : handoff
}

/** What a compaction entry holds beside its kind and data. `head: "self"`: nothing before the entry itself stays. */
export interface Placement {
  readonly model: ReadonlyArray<Message>
  readonly head: EntryId | "self" | null
  readonly edits: ReadonlyArray<ContextEdit>
  readonly carried: Carried
  /** Tokens of the context with it, about. */
  readonly tokensAfter: number
  /** Tokens that it takes less than what it stands for, about; not above 0 where it is no shorter. */
  readonly gained: number
}

const nothing: Carried = { goal: [], handoff: null, todo: null }

const section = (name: string, body: string | null): string =>
  body === null ? "" : `\n\n<${name}>\n${body}\n</${name}>`

const intro = "The earlier part of this conversation was compacted; this takes its place."
const goalIntro = "What was asked, word for word, and is still being worked on:"

/** The user message that stands for the older part. */
const headMessage = (summary: string, { goal, handoff, todo }: Carried): Message => {
  const words = `${intro}${section("summary", summary)}${section("handoff", handoff)}${section("todo", todo)}`
  const asked = goal.flatMap((input) => input.content)
  return {
    role: "user",
    content: [text(asked.length === 0 ? words : `${words}\n\n${goalIntro}`), ...asked],
  }
}

/** Edits that only entries behind the cut made of entries in front of it: the new head makes them again. */
const editsCarried = (older: ReadonlyArray<ContextEntry>, newer: ReadonlyArray<ContextEntry>) => {
  const authors = new Set(older.map((entry) => entry.id))
  const targets = new Set(newer.map((entry) => entry.id))
  return [...newestEdits([...older, ...newer])].flatMap(([target, { by, edit }]) =>
    authors.has(by) && targets.has(target) ? [edit] : [],
  )
}

/**
 * The entry for a plan and its summary (empty for stubs), against the context as it is now; null when the plan is stale.
 * `goals` are the inputs of the run in progress, `todo` the todo list as text.
 */
export const placement = (
  state: ContextState,
  plan: CompactionPlan,
  given: { readonly summary: string; readonly goals: ReadonlyArray<Goal>; readonly todo: string | null },
): Placement | null => {
  const place = placeOf(state, plan.cut)
  if (place === null) return null
  const { at, selected } = place
  if (plan.method === "tool_results") {
    const { edits, saved } = toolStubs(selected, at)
    const tokensAfter = estimateMessages(contextOf(state)) - saved
    return edits.length === 0 ? null : { model: [], head: null, edits, carried: nothing, tokensAfter, gained: saved }
  }
  const older = selected.slice(0, at)
  const newer = selected.slice(at)
  const kept = new Set(newer.map((entry) => entry.id))
  const carried: Carried = {
    goal: given.goals.filter((goal) => !kept.has(goal.entry)),
    handoff: handoffOf(selected),
    todo: given.todo,
  }
  const messages = messagesByEntry(selected)
  const prompt = diffPrompt(emptyPrompt, promptOf(messages.slice(0, at).flat()))
  const model = [...(prompt === null ? [] : [prompt]), headMessage(given.summary, carried)]
  return {
    model,
    head: newer[0]?.id ?? "self",
    edits: editsCarried(older, newer),
    carried,
    tokensAfter: estimateMessages([...model, ...messages.slice(at).flat()]),
    gained: estimateMessages(messages.slice(0, at).flat()) - estimateMessages(model),
  }
}

/** The carried part as it is kept in an entry's data. */
export const carriedData = ({ goal, handoff, todo }: Carried): Json => ({
  goal: goal.map((input) => input.submission),
  handoff,
  todo: todo !== null,
})
