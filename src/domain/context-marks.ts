/**
 * What became of the entries of a transcript on their way to a model, for people: which ones an edit hides or replaces, and which lie
 * before the present context. Pure; follows the context rules 1 to 5.
 */
import { type ContextEntry, newestEdits, rangeOf } from "./context.ts"
import type { EntryId } from "./ids.ts"

export type ContextMark =
  /** Before the present context, which entry `by` begins. */
  | { readonly type: "before"; readonly by: EntryId }
  /** Hidden by an edit of entry `by`. */
  | { readonly type: "omitted"; readonly by: EntryId }
  /** Something else stands in its place, by an edit of entry `by`. */
  | { readonly type: "replaced"; readonly by: EntryId }

/** The marks of visible entries (in transcript order); an entry that a model sees as it is has none. */
export const contextMarks = (visible: ReadonlyArray<ContextEntry>): ReadonlyMap<EntryId, ContextMark> => {
  const { head, range } = rangeOf(visible)
  const edits = newestEdits(range)
  const kept = new Set(range.map((entry) => entry.id))
  const marks = new Map<EntryId, ContextMark>()
  for (const entry of visible) {
    const edit = edits.get(entry.id)
    const olderHead = head !== null && entry.head !== null && entry.id !== head.id
    if (head !== null && entry.id !== head.id && (!kept.has(entry.id) || olderHead)) {
      marks.set(entry.id, { type: "before", by: head.id })
    } else if (edit !== undefined) {
      marks.set(entry.id, { type: edit.edit.type === "omit" ? "omitted" : "replaced", by: edit.by })
    }
  }
  return marks
}
