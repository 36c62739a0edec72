/**
 * The todo list as lines of the terminal. Pure.
 */
import type { TodoItem } from "../../domain/document.ts"
import { oneLine } from "./sanitize.ts"
import type { Tone } from "./style.ts"

const marks = { pending: "☐", in_progress: "▸", done: "☑" } as const

/** A head line, then one line an item, in its order. */
export const planLines = (
  items: ReadonlyArray<TodoItem>,
): ReadonlyArray<{ readonly kind: "line"; readonly tone: Tone; readonly text: string }> => {
  if (items.length === 0) return [{ kind: "line", tone: "dim", text: "the todo list is empty" }]
  const done = items.filter((item) => item.status === "done").length
  return [
    { kind: "line", tone: "dim", text: `todo: ${done} of ${items.length} done` },
    ...items.map(({ id, status, text }) => ({
      kind: "line" as const,
      tone: status === "in_progress" ? ("accent" as const) : ("dim" as const),
      text: `  ${marks[status]} ${oneLine(id)}. ${oneLine(text)}`,
    })),
  ]
}
