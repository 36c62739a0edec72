/**
 * Merges what goes out together: pieces of one text, of one thinking or of one call's arguments become one event, and so do changes of the
 * state. Pure.
 */
import type { AguiEvent } from "./protocol.ts"

type Piece = Extract<
  AguiEvent,
  { readonly type: "TEXT_MESSAGE_CONTENT" | "REASONING_MESSAGE_CONTENT" | "TOOL_CALL_ARGS" }
>

/** What a piece belongs to, or null. */
const whole = (event: AguiEvent): string | null => {
  switch (event.type) {
    case "TEXT_MESSAGE_CONTENT":
    case "REASONING_MESSAGE_CONTENT":
      return `${event.type} ${event.messageId}`
    case "TOOL_CALL_ARGS":
      return `${event.type} ${event.toolCallId}`
    default:
      return null
  }
}

/** The same events in the same order, with neighbours that belong together merged. */
export const merge = (events: ReadonlyArray<AguiEvent>): ReadonlyArray<AguiEvent> => {
  const out: Array<AguiEvent> = []
  let at = 0
  while (at < events.length) {
    const event = events[at++]
    if (event === undefined) break
    if (event.type === "STATE_DELTA") {
      const delta = [...event.delta]
      for (let next = events[at]; next?.type === "STATE_DELTA"; next = events[++at]) delta.push(...next.delta)
      out.push({ ...event, delta })
      continue
    }
    const key = whole(event)
    if (key === null) {
      out.push(event)
      continue
    }
    const pieces: Array<string> = [(event as Piece).delta] // it has a key
    for (let next = events[at]; next !== undefined && whole(next) === key; next = events[++at]) {
      pieces.push((next as Piece).delta) // it has the same key
    }
    out.push(pieces.length === 1 ? event : { ...(event as Piece), delta: pieces.join("") })
  }
  return out
}
