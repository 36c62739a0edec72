/**
 * Which conversations a fork sees, and how much of each (context rule 3). Pure.
 */
import type { Conversation } from "../../domain/conversation.ts"
import { CorruptRow } from "../errors.ts"

/** A conversation's own entries up to and including `cap` are visible. */
export interface Segment {
  readonly conversation: number
  readonly cap: number
}

/**
 * First ancestor first. A fork sees its parent up to the fork entry, and of the parent's ancestors never more than the parent does:
 * the caps only get smaller on the way up. Empty when the conversation does not exist. Throws `CorruptRow` on a cycle.
 */
export const lineage = (
  location: string,
  find: (id: number) => Conversation | null,
  conversation: number,
  cutoff: number,
): ReadonlyArray<Segment> => {
  const segments: Array<Segment> = []
  let at = find(conversation)
  let cap = cutoff
  while (at !== null) {
    segments.unshift({ conversation: at.id, cap })
    if (at.parent === null) break
    if (at.parent.conversation >= at.id) {
      const detail = `parent: expected an older conversation, got ${at.parent.conversation}`
      throw new CorruptRow({ location, table: "conversations", row: String(at.id), detail })
    }
    cap = Math.min(cap, at.parent.entry)
    at = find(at.parent.conversation)
  }
  return segments
}
