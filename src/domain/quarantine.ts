/**
 * What of a stored conversation a provider would refuse, as edits that keep it from being sent. Pure; nothing is deleted: each edit puts
 * repaired messages in an entry's place, or leaves it out where nothing of it can be sent. Rules:
 * 1. A sound context gives no edits.
 * 2. With the edits applied the derived context needs no repair, so a second look finds nothing.
 */
import { cleanAssistant, cleanMessage } from "./clean-message.ts"
import { type ContextEntry, deriveContext, editsOf, selectEntries } from "./context.ts"
import type { ContextEdit } from "./entry.ts"
import type { EntryId } from "./ids.ts"
import { isRecord } from "./json.ts"
import type { Message } from "./message.ts"
import { repair, validityRules } from "./validity.ts"
import { sameItems } from "./well-formed.ts"

/** Kind of the entry that carries the edits. */
export const quarantineKind = "pi.quarantine"

export interface Quarantine {
  readonly edits: ReadonlyArray<ContextEdit>
  /** One line for each thing found, by entry. */
  readonly found: ReadonlyArray<{ readonly entry: EntryId; readonly what: string }>
}

/** What some provider would refuse in the context of these entries. */
const refusals = (entries: ReadonlyArray<ContextEntry>): ReadonlyArray<string> => {
  const messages = deriveContext(entries)
  return Object.values(validityRules).flatMap((rules) => repair(messages, rules).repairs)
}

/** The edits that a context needs, null where it is sound. `visible` in transcript order. */
export const quarantineOf = (visible: ReadonlyArray<ContextEntry>): Quarantine | null => {
  if (refusals(visible).length === 0) return null
  const first = repairEach(visible)
  // What was repaired one by one and still does not fit together is left out, the newest first.
  const chosen = new Map(first.edits.map((edit) => [edit.entry, edit]))
  const found = [...first.found]
  const suspects = selectEntries(visible).toReversed()
  for (const { id } of suspects) {
    const left = refusals([...visible, carrying([...chosen.values()])])
    const [reason] = left
    if (reason === undefined) break
    const without = new Map(chosen).set(id, { type: "omit", entry: id })
    if (refusals([...visible, carrying([...without.values()])]).length >= left.length) continue
    chosen.set(id, { type: "omit", entry: id })
    found.push({ entry: id, what: reason })
  }
  return chosen.size === 0 ? null : { edits: [...chosen.values()], found }
}

/** An entry behind all others with these edits. */
const carrying = (edits: ReadonlyArray<ContextEdit>): ContextEntry => ({
  id: Number.MAX_SAFE_INTEGER as EntryId,
  model: [],
  head: null,
  edits,
})

/** Each entry's messages made acceptable by themselves; call ids are unique and results name the calls that they follow. */
const repairEach = (visible: ReadonlyArray<ContextEntry>): Quarantine => {
  const selected = selectEntries(visible)
  const present = editsOf(selected)
  const { toolName } = validityRules.strict
  const ids = new Set<string>()
  let calls = new Map<string, { readonly id: string; readonly name: string }>()
  const edits: Array<ContextEdit> = []
  const found: Array<Quarantine["found"][number]> = []
  for (const { id, model } of selected) {
    const messages = present.get(id) ?? model
    const note = (what: string) => void found.push({ entry: id, what })
    const cleaned = messages.flatMap((message): ReadonlyArray<Message> => {
      if (!isRecord(message) || message.role !== "assistant") {
        const one = cleanMessage(message, toolName, note)
        if (one?.role !== "tool") return one === null ? [] : [one]
        const call = calls.get(one.callId)
        if (call === undefined || (call.id === one.callId && call.name === one.toolName)) return [one]
        note("result made to fit its call")
        return [{ ...one, callId: call.id, toolName: call.name }]
      }
      // never sent, so nothing to refuse
      if (neverSent.has(message.stopReason)) return [message]
      const one = cleanAssistant(message, toolName, ids, note)
      if (one === null) return []
      calls = new Map(one.calls.map(({ call, stored }) => [stored, { id: call.id, name: call.name }]))
      return [one.message]
    })
    if (sameItems(cleaned, messages)) continue
    edits.push(cleaned.length === 0 ? { type: "omit", entry: id } : { type: "replace", entry: id, model: cleaned })
  }
  return { edits, found }
}

const neverSent = new Set<unknown>(["aborted", "error", "deferred"])
