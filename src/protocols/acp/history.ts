/**
 * A transcript as `session/update` payloads: what an editor is told when it loads a session, or when it missed events. Pure.
 */

import { type Entry, EntryKind } from "../../domain/entry.ts"
import type { Json } from "../../domain/json.ts"
import type { ToolResultMessage } from "../../domain/message.ts"
import { changedLine, resultContent } from "./tool-call.ts"
import { both, completed, each, ended, nothing, type Said, started, userSaid, type View } from "./view.ts"

/** Entries whose messages are for the model alone. */
const hidden: ReadonlySet<string> = new Set([EntryKind.compaction, EntryKind.reset, EntryKind.system])

const result = (view: View, message: ToolResultMessage): Said => {
  const details: Json | null = message.details ?? null
  return ended(view, message.callId, message.toolName, {
    failed: message.isError,
    content: resultContent(message.content),
    raw: details,
    line: changedLine(details),
  })
}

const entrySaid = (view: View, entry: Entry): Said => {
  if (hidden.has(entry.kind)) return [view, nothing]
  return each(view, entry.model, (now, message) => {
    switch (message.role) {
      case "system":
        return [now, nothing]
      case "user":
        return userSaid(now, `e${entry.id}`, message.content)
      case "assistant":
        return both(completed(now, `e${entry.id}`, message.content), (said) =>
          each(
            said,
            message.content.filter((part) => part.type === "toolCall"),
            (at, call) => started(at, call.id, call.name, call.arguments),
          ),
        )
      case "tool":
        return result(now, message)
    }
  })
}

/** The entries, in order. */
export const history = (view: View, entries: ReadonlyArray<Entry>): Said => each(view, entries, entrySaid)
