/**
 * The todo list as a value: what each action makes of it, and how it reads. Pure. Ids are numbers in the order in which items were added;
 * an id that was given once is never given again, also after its item is gone.
 */
import { Either } from "effect"
import type { TodoDocument, TodoItem } from "../../../domain/document.ts"

export type TodoStatus = TodoItem["status"]

export type TodoAction =
  | { readonly action: "list" }
  | { readonly action: "add"; readonly items: ReadonlyArray<{ readonly text: string; readonly status?: TodoStatus }> }
  | {
      readonly action: "update"
      readonly items: ReadonlyArray<{ readonly id: string; readonly text?: string; readonly status?: TodoStatus }>
    }
  /** Those items, or all. */
  | { readonly action: "clear"; readonly ids: ReadonlyArray<string> | null }
  /** Those first, in this order; the others behind them, in theirs. */
  | { readonly action: "reorder"; readonly ids: ReadonlyArray<string> }

/** Items of one list at most. */
export const maxItems = 200

/** The number of the next new item. */
const nextOf = ({ items, next }: TodoDocument): number =>
  items.reduce((most, { id }) => Math.max(most, /^\d{1,9}$/.test(id) ? Number(id) + 1 : 0), next ?? 1)

const unknownIds = ({ items }: TodoDocument, ids: ReadonlyArray<string>): string | null => {
  const known = new Set(items.map((item) => item.id))
  const missing = ids.filter((id) => !known.has(id))
  if (missing.length === 0) return null
  const there = items.length === 0 ? "the list is empty" : `the ids are ${items.map((item) => item.id).join(", ")}`
  return `there is no item ${missing.map((id) => JSON.stringify(id)).join(", ")}; ${there}`
}

/** The list after an action, or why it cannot be done; then nothing of it is. */
export const applyTodo = (list: TodoDocument, act: TodoAction): Either.Either<TodoDocument, string> => {
  const next = nextOf(list)
  switch (act.action) {
    case "list":
      return Either.right(list)
    case "add": {
      const { length } = list.items
      if (length + act.items.length > maxItems) {
        return Either.left(`a list has at most ${maxItems} items and this one has ${length}; clear what is done first`)
      }
      const added = act.items.map(({ status = "pending", text }, at) => ({ id: String(next + at), text, status }))
      return Either.right({ items: [...list.items, ...added], next: next + added.length })
    }
    case "update": {
      const fault = unknownIds(
        list,
        act.items.map((item) => item.id),
      )
      if (fault !== null) return Either.left(fault)
      const items = list.items.map((item) =>
        act.items.reduce<TodoItem>(
          (now, { id, status, text }) =>
            id === now.id ? { id, text: text ?? now.text, status: status ?? now.status } : now,
          item,
        ),
      )
      return Either.right({ items, next })
    }
    case "clear": {
      const { ids } = act
      if (ids === null) return Either.right({ items: [], next })
      const fault = unknownIds(list, ids)
      if (fault !== null) return Either.left(fault)
      return Either.right({ items: list.items.filter((item) => !ids.includes(item.id)), next })
    }
    case "reorder": {
      const fault = unknownIds(list, act.ids)
      if (fault !== null) return Either.left(fault)
      const first = [...new Set(act.ids)].flatMap((id) => list.items.filter((item) => item.id === id))
      return Either.right({ items: [...first, ...list.items.filter((item) => !first.includes(item))], next })
    }
  }
}

/** The list as the model reads it. */
export const todoText = (items: ReadonlyArray<TodoItem>): string => {
  if (items.length === 0) return "The todo list is empty."
  const done = items.filter((item) => item.status === "done").length
  return [`${done} of ${items.length} done:`, ...items.map((item) => `${item.id}. [${item.status}] ${item.text}`)].join(
    "\n",
  )
}
