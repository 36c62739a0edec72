/**
 * Where a context may be cut: never between a call and its result, never inside a batch in flight, and only in front of what a user or the
 * model said. Positions count entries of a context in its order (the head first): a cut at `k` leaves `k` entries behind it, and at
 * the end leaves nothing in front. Pure.
 */
import { type ContextEntry, editsOf, messagesOf } from "./context.ts"
import type { Message } from "./message.ts"
import { toolCallsOf } from "./message.ts"
import { estimateMessages } from "./token-estimate.ts"

/** The messages that each entry gives to the context, edits applied. */
export const messagesByEntry = (selected: ReadonlyArray<ContextEntry>): ReadonlyArray<ReadonlyArray<Message>> => {
  const edits = editsOf(selected)
  return selected.map((entry) => messagesOf([entry], edits))
}

/** Marks every position that would part a call from its result, by the rules of pairing (context rules 7 and 8). */
const parted = (messages: ReadonlyArray<ReadonlyArray<Message>>): ReadonlyArray<boolean> => {
  const results = new Map<string, Array<{ readonly entry: number; readonly at: number }>>()
  const calls: Array<{ readonly id: string; readonly entry: number; readonly at: number }> = []
  let at = 0
  let lastAnswer = -1
  messages.forEach((list, entry) => {
    for (const message of list) {
      at++
      if (message.role === "tool") {
        const known = results.get(message.callId)
        if (known === undefined) results.set(message.callId, [{ entry, at }])
        else known.push({ entry, at })
      }
      if (message.role !== "assistant") continue
      lastAnswer = at
      for (const call of toolCallsOf(message)) calls.push({ id: call.id, entry, at })
    }
  })
  const barred: Array<boolean> = new Array(messages.length + 1).fill(false)
  for (const call of calls) {
    const waiting = results.get(call.id) ?? []
    const found = waiting.findIndex((result) => result.at > call.at)
    const result = found < 0 ? undefined : waiting.splice(found, 1)[0]
    // A call without a result that nothing was said after is in flight: all behind it stays together.
    const until = result?.entry ?? (call.at === lastAnswer ? messages.length : call.entry)
    for (let k = call.entry + 1; k <= until; k++) barred[k] = true
  }
  return barred
}

/**
 * Positions at which a context may be cut, ascending, from 1 to its length. Not behind an input that is still to be answered: it would have
 * to be carried over the cut.
 */
export const cutPoints = (messages: ReadonlyArray<ReadonlyArray<Message>>): ReadonlyArray<number> => {
  const barred = parted(messages)
  const endsWithInput = messages.findLast((list) => list.length > 0)?.at(-1)?.role === "user"
  const points: Array<number> = []
  for (let k = 1; k <= messages.length; k++) {
    const first = messages[k]?.[0]
    const opens = (k === messages.length && !endsWithInput) || first?.role === "user" || first?.role === "assistant"
    if (opens && barred[k] !== true) points.push(k)
  }
  return points
}

/** How much may stay in front of a cut, in the tokens of `estimateMessages`. */
export interface Room {
  /** About as much stays. */
  readonly keep: number
  /** The last step stays where it alone is larger than `keep`, up to this. */
  readonly most: number
}

/** The cut that keeps as much as fits into `keep`, the last step at least. Null where there is none, or everything fits. */
export const chooseCut = (messages: ReadonlyArray<ReadonlyArray<Message>>, room: Room): number | null => {
  if (estimateMessages(messages.flat()) <= room.keep) return null
  const points = cutPoints(messages)
  const end = messages.length
  let kept = 0
  let position = end
  let best: number | null = null
  /** The last point in front of the end, and what a cut there keeps. */
  let last: { readonly at: number; readonly kept: number } | null = null
  for (const point of [...points].reverse()) {
    while (position > point) {
      position--
      kept += estimateMessages(messages[position] ?? [])
    }
    if (point < end) last ??= { at: point, kept }
    if (kept <= room.keep) best = point
    else if (last !== null) break
  }
  if (best !== null && best < end) return best
  if (last !== null && (last.kept <= room.most || best === null)) return last.at
  return best
}
