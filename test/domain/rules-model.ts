/**
 * The ten context rules in their slowest and most obvious form, over conversations that fork: a model of its own that shares nothing with the
 * program but the types. Beside it arbitrary worlds: conversations that grow in turn, with forks of forks, resets, heads, edits of edits,
 * answers that never reach a model, calls without results and results without calls.
 */
import fc from "fast-check"
import type { Entry } from "../../src/domain/entry.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { Message, ToolResultMessage } from "../../src/domain/message.ts"

export type ModelEntry = Pick<Entry, "id" | "model" | "head" | "edits">

/** One conversation: where it branched off, and what it wrote itself, oldest first. */
export interface ModelConversation {
  readonly parent: { readonly conversation: number; readonly entry: number } | null
  readonly own: Array<ModelEntry>
}

/** Conversations by number, a fork after what it branched off from. */
export type World = ReadonlyArray<ModelConversation>

/** What rule 8 tells a model about a call that has no result. */
const noResult = "The call has no result: it was interrupted or its result was lost."

/** Rule 3: the ancestors' entries, each capped at its fork point, then the own ones. */
export const modelVisible = (world: World, conversation: number): Array<ModelEntry> => {
  const here = world[conversation]
  if (here === undefined) return []
  const { parent } = here
  if (parent === null) return [...here.own]
  return [...modelVisible(world, parent.conversation).filter((entry) => entry.id <= parent.entry), ...here.own]
}

/** All ten rules, sentence by sentence. */
export const modelContext = (visible: ReadonlyArray<ModelEntry>): Array<Message> => {
  // 1: the newest entry with a head. 2: the range starts there, or at the start.
  let h: ModelEntry | null = null
  for (const entry of visible) if (entry.head !== null) h = entry
  const range: Array<ModelEntry> = []
  for (const entry of visible) if (h === null || entry.id >= (h.head ?? 0)) range.push(entry)

  // 5: H first, then what carries no head.
  const order: Array<ModelEntry> = []
  if (h !== null) order.push(h)
  for (const entry of range) if (entry.head === null) order.push(entry)

  // 4: the newest edit in the range wins. 6: system messages are messages like any other. 9: what reaches no model.
  let messages: Array<Message> = []
  for (const entry of order) {
    let said: ReadonlyArray<Message> = entry.model
    for (const editor of range) {
      for (const edit of editor.edits) {
        if (edit.entry === entry.id) said = edit.type === "omit" ? [] : edit.model
      }
    }
    for (const message of said) {
      const dead = message.role === "assistant" && ["aborted", "error", "deferred"].includes(message.stopReason)
      if (!dead) messages.push(message)
    }
  }

  // 7 and 8: every call takes the first free result behind it, or a made one; what no call took is dropped.
  const taken = new Set<number>()
  const paired: Array<Message> = []
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at] as Message
    if (message.role === "tool") continue
    paired.push(message)
    if (message.role !== "assistant") continue
    for (const part of message.content) {
      if (part.type !== "toolCall") continue
      let result: ToolResultMessage | null = null
      for (let later = at + 1; later < messages.length && result === null; later++) {
        const other = messages[later] as Message
        if (other.role !== "tool" || other.callId !== part.id || taken.has(later)) continue
        taken.add(later)
        result = other
      }
      paired.push(
        result ?? {
          role: "tool",
          callId: part.id,
          toolName: part.name,
          content: [{ type: "text", text: noResult }],
          isError: true,
        },
      )
    }
  }

  // 10: a system message that only user messages precede moves to the front.
  messages = []
  const late: Array<Message> = []
  let opening = true
  for (const message of paired) {
    if (message.role !== "system" && message.role !== "user") opening = false
    if (opening && message.role === "system") messages.push(message)
    else late.push(message)
  }
  return [...messages, ...late]
}

// Arbitrary worlds.

const words = fc.constantFrom("one", "two", "three")
const calls = ["a", "b", "c", "d"] as const

const user: fc.Arbitrary<Message> = words.map((text) => ({ role: "user", content: [{ type: "text", text }] }))
const system: fc.Arbitrary<Message> = fc.record({
  role: fc.constant("system" as const),
  sections: fc.array(fc.record({ name: words, text: fc.option(words, { nil: null }) }), { maxLength: 2 }),
  addTools: fc.constant([]),
  removeTools: fc.constant([]),
})
const assistant: fc.Arbitrary<Message> = fc
  .record({
    text: words,
    ids: fc.uniqueArray(fc.constantFrom(...calls), { maxLength: 3 }),
    stopReason: fc.constantFrom("stop", "tool_calls", "tool_calls", "aborted", "error", "deferred"),
  })
  .map(({ ids, stopReason, text }) => ({
    role: "assistant",
    content: [
      { type: "text" as const, text },
      ...ids.map((id) => ({ type: "toolCall" as const, id, name: `tool-${id}`, arguments: {} })),
    ],
    model: "test/model",
    stopReason: stopReason as "stop",
  }))
const result: fc.Arbitrary<Message> = fc.record({ id: fc.constantFrom(...calls), text: words }).map(({ id, text }) => ({
  role: "tool",
  callId: id,
  toolName: `tool-${id}`,
  content: [{ type: "text", text }],
  isError: false,
}))
const message = fc.oneof(
  { weight: 1, arbitrary: system },
  { weight: 3, arbitrary: user },
  { weight: 4, arbitrary: assistant },
  { weight: 5, arbitrary: result },
)

/** One thing that happens in a world; numbers are taken modulo what there is. */
export type Step =
  | { readonly type: "fork"; readonly from: number; readonly at: number }
  | {
      readonly type: "append"
      readonly to: number
      readonly model: ReadonlyArray<Message>
      /** `self` for a reset. */
      readonly head: "self" | number | null
      readonly edits: ReadonlyArray<{ readonly target: number; readonly replace: ReadonlyArray<Message> | null }>
    }

const which = fc.nat(40)

const append: fc.Arbitrary<Step> = fc.record({
  type: fc.constant("append" as const),
  to: which,
  model: fc.oneof(
    { weight: 8, arbitrary: message.map((one) => [one]) },
    { weight: 2, arbitrary: fc.array(message, { maxLength: 3 }) },
  ),
  head: fc.oneof(
    { weight: 20, arbitrary: fc.constant(null) },
    { weight: 1, arbitrary: fc.constant("self" as const) },
    { weight: 1, arbitrary: which },
  ),
  edits: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    {
      weight: 1,
      arbitrary: fc.array(
        fc.record({
          target: which,
          replace: fc.option(fc.array(fc.oneof(user, assistant, result), { maxLength: 2 }), { nil: null }),
        }),
        { minLength: 1, maxLength: 2 },
      ),
    },
  ),
})

export const steps = (maxLength: number): fc.Arbitrary<ReadonlyArray<Step>> =>
  fc.array(
    fc.oneof(
      { weight: 10, arbitrary: append },
      { weight: 1, arbitrary: fc.record({ type: fc.constant("fork" as const), from: which, at: which }) },
    ),
    { maxLength },
  )

/** A world that the steps make, one after the other. `told` hears what each did. */
export const grow = (
  all: ReadonlyArray<Step>,
  told: (world: World, change: { readonly conversation: number; readonly entry: ModelEntry | null }) => void = () => {},
): World => {
  const world: Array<ModelConversation> = [{ parent: null, own: [] }]
  let newest = 0
  for (const step of all) {
    if (step.type === "fork") {
      const from = step.from % world.length
      const visible = modelVisible(world, from)
      const entry = visible[step.at % Math.max(1, visible.length)]
      if (entry === undefined) continue
      world.push({ parent: { conversation: from, entry: entry.id }, own: [] })
      told(world, { conversation: world.length - 1, entry: null })
      continue
    }
    const to = step.to % world.length
    newest += 2
    const id = newest as EntryId
    const visible = modelVisible(world, to)
    const at = (n: number): EntryId => visible[n % Math.max(1, visible.length)]?.id ?? id
    const entry: ModelEntry = {
      id,
      model: step.model,
      head: step.head === null ? null : step.head === "self" ? id : at(step.head),
      edits: step.edits.map(({ replace, target }) =>
        replace === null ? { type: "omit", entry: at(target) } : { type: "replace", entry: at(target), model: replace },
      ),
    }
    world[to]?.own.push(entry)
    told(world, { conversation: to, entry })
  }
  return world
}
