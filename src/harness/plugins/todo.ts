/**
 * Plugin Todo: the tool `todo`, a list of what the model set itself to do. The list is the document `pi.todo`, written in the commit of the
 * call's result: a call that a crash cut off has changed nothing and runs again, one whose result is there has changed it once. It is
 * carried over compactions, and a fork goes on with the list of its entry. docs/todo.md.
 */
import { Effect, Either, Schema } from "effect"
import { todoDocument } from "../../domain/builtin-documents.ts"
import { text } from "../../domain/message.ts"
import { Documents } from "../../storage/documents/documents.ts"
import { defineTool, invalidArguments, toolFailure } from "../../tools/define.ts"
import type { Tool } from "../../tools/tool.ts"
import { definePlugin } from "../define.ts"
import { applyTodo, type TodoAction, todoText } from "./todo/list.ts"

const name = "todo"

const Status = Schema.Literal("pending", "in_progress", "done")

/** Models write numbers where ids look like numbers. */
const Id = Schema.Union(Schema.NonEmptyString, Schema.Int)

const Parameters = Schema.Struct({
  action: Schema.Literal("add", "update", "list", "clear", "reorder"),
  items: Schema.optional(
    Schema.Array(
      Schema.Struct({
        id: Schema.optional(Id.annotations({ description: "update: which item" })),
        text: Schema.optional(
          Schema.NonEmptyString.pipe(Schema.maxLength(2_000)).annotations({ description: "what is to be done" }),
        ),
        status: Schema.optional(Status),
      }),
    ).annotations({ description: "add: the new items; update: the items with what changes of them" }),
  ),
  ids: Schema.optional(
    Schema.Array(Id).annotations({
      description: "clear: the items to remove (default: all); reorder: the items in their new order, others behind",
    }),
  ),
})

/** The action that arguments say, or what is wrong with them, one fault a line. */
const actionOf = ({ action, ids, items = [] }: typeof Parameters.Type): Either.Either<TodoAction, string> => {
  const faults: Array<string> = []
  const wants = (ok: boolean, path: string, expected: string) => {
    if (!ok) faults.push(`${path}: expected ${expected}, got nothing`)
  }
  switch (action) {
    case "list":
      return Either.right({ action })
    case "clear":
      return Either.right({ action, ids: ids?.map(String) ?? null })
    case "reorder":
      wants(ids !== undefined && ids.length > 0, "ids", "the ids of items in their new order")
      break
    case "add":
      wants(items.length > 0, "items", "at least one item with a text")
      for (const [at, item] of items.entries()) wants(item.text !== undefined, `items[${at}].text`, "a text")
      break
    case "update":
      wants(items.length > 0, "items", "at least one item with its id and what changes")
      for (const [at, item] of items.entries()) {
        wants(item.id !== undefined, `items[${at}].id`, "the id of an item")
        wants(item.text !== undefined || item.status !== undefined, `items[${at}]`, "a text or a status")
      }
  }
  if (faults.length > 0) return Either.left(faults.join("\n"))
  const change = ({ status, text }: (typeof items)[number]) => ({
    ...(text === undefined ? {} : { text }),
    ...(status === undefined ? {} : { status }),
  })
  if (action === "reorder") return Either.right({ action, ids: (ids ?? []).map(String) })
  if (action === "update")
    return Either.right({ action, items: items.map((item) => ({ id: String(item.id), ...change(item) })) })
  return Either.right({ action, items: items.map((item) => ({ text: "", ...change(item) })) })
}

/** The tool. It writes nothing itself: the write goes along with its result. */
export const todoTool: Tool<Documents> = defineTool({
  name,
  description: `The list of what you have to do in this conversation, for work of several steps. The person sees it.
add appends items; update changes text or status of items; reorder puts items first; clear removes items; list shows the list.
Ids stay the same for as long as an item is there. Set an item in_progress when you begin it and done as soon as it is done.`,
  parameters: Parameters,
  effects: ["state_write"],
  effectsOf: ({ action }) => (action === "list" ? ["read"] : ["state_write"]),
  replay: "safe",
  // Each call starts from the list that the one before it left.
  execution: "sequential",
  execute: (args, { conversation }) =>
    Effect.gen(function* () {
      const act = yield* Either.mapLeft(actionOf(args), (detail) =>
        toolFailure(name, invalidArguments(name, detail).detail),
      )
      const documents = yield* Documents
      const broken = (error: { readonly message: string }) =>
        toolFailure(name, `the list cannot be read: ${error.message}`)
      const draft = yield* Effect.mapError(documents.draft(todoDocument, { conversation }), broken)
      const changed = yield* Either.mapLeft(applyTodo(draft.value, act), (why) => toolFailure(name, why))
      const write =
        act.action === "list"
          ? null
          : yield* Effect.mapError(documents.write(todoDocument, draft.replace(changed)), broken)
      const { items } = changed
      return {
        output: [text(todoText(items))],
        structuredOutput: { items },
        details: { items },
        ...(write === null ? {} : { control: { documents: [write] } }),
      }
    }),
})

export const todo = definePlugin({
  name,
  aliases: ["Todo", "todos"],
  description: "A durable todo list that the model keeps and the person sees",
  tools: () => [todoTool],
})
