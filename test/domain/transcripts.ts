/**
 * Arbitrary transcripts for property tests: entries with heads, edits, system changes, calls with results early, late, twice or never.
 */
import fc from "fast-check"
import type { ContextEdit, Entry } from "../../src/domain/entry.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { Message } from "../../src/domain/message.ts"

export type TestEntry = Pick<Entry, "id" | "model" | "head" | "edits">

const callIds = ["a", "b", "c", "d"] as const
const words = fc.constantFrom("one", "two", "three")

const system: fc.Arbitrary<Message> = fc.record({
  role: fc.constant("system" as const),
  sections: fc.array(fc.record({ name: words, text: fc.option(words, { nil: null }) }), { maxLength: 2 }),
  addTools: fc.constant([]),
  removeTools: fc.constant([]),
})

const user: fc.Arbitrary<Message> = words.map((text) => ({ role: "user", content: [{ type: "text", text }] }))

const assistant: fc.Arbitrary<Message> = fc
  .record({
    text: words,
    calls: fc.uniqueArray(fc.constantFrom(...callIds), { maxLength: 3 }),
    stopReason: fc.constantFrom("stop", "tool_calls", "tool_calls", "aborted", "error", "deferred"),
  })
  .map(({ calls, stopReason, text }) => ({
    role: "assistant",
    content: [
      { type: "text" as const, text },
      ...calls.map((id) => ({ type: "toolCall" as const, id, name: `tool-${id}`, arguments: {} })),
    ],
    model: "test/model",
    stopReason: stopReason as "stop",
  }))

const result: fc.Arbitrary<Message> = fc
  .record({ id: fc.constantFrom(...callIds), text: words })
  .map(({ id, text }) => ({
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

interface Draft {
  readonly model: ReadonlyArray<Message>
  readonly head: number | null
  readonly edit: { readonly target: number; readonly replace: Message | null } | null
}

const draft: fc.Arbitrary<Draft> = fc.record({
  model: fc.oneof(
    { weight: 8, arbitrary: message.map((one) => [one]) },
    { weight: 1, arbitrary: fc.array(message, { maxLength: 3 }) },
  ),
  head: fc.option(fc.nat(20), { nil: null, freq: 12 }),
  edit: fc.option(fc.record({ target: fc.nat(20), replace: fc.option(user, { nil: null }) }), { nil: null, freq: 8 }),
})

const id = (n: number): EntryId => n as EntryId

/** Up to `maxLength` entries with ids 1, 3, 5, …; heads and edits name earlier entries, or none that exist. */
export const transcript = (maxLength = 25): fc.Arbitrary<ReadonlyArray<TestEntry>> =>
  fc.array(draft, { maxLength }).map((drafts) =>
    drafts.map((each, at): TestEntry => {
      const earlier = (n: number) => id(2 * (n % (at + 1)) + 1)
      const edits: ReadonlyArray<ContextEdit> =
        each.edit === null
          ? []
          : [
              each.edit.replace === null
                ? { type: "omit", entry: earlier(each.edit.target) }
                : { type: "replace", entry: earlier(each.edit.target), model: [each.edit.replace] },
            ]
      return {
        id: id(2 * at + 1),
        model: each.model,
        head: each.head === null ? null : earlier(each.head),
        edits,
      }
    }),
  )
