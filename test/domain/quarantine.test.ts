/**
 * The quarantine: a sound context stays as it is, any other one becomes sound, and a second look finds nothing.
 */
import { Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type ContextEntry, deriveContext } from "../../src/domain/context.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import { Message } from "../../src/domain/message.ts"
import { quarantineOf } from "../../src/domain/quarantine.ts"
import { repair, validityRules } from "../../src/domain/validity.ts"
import { damagedHistory, validHistory } from "../models/arbitrary-history.ts"
import { transcript } from "./transcripts.ts"

const entries = (messages: ReadonlyArray<Message>): ReadonlyArray<ContextEntry> =>
  messages.map((message, at) => ({ id: (at + 1) as EntryId, model: [message], head: null, edits: [] }))

const faults = (visible: ReadonlyArray<ContextEntry>): ReadonlyArray<string> =>
  Object.values(validityRules).flatMap((rules) => repair(deriveContext(visible), rules).repairs)

const applied = (visible: ReadonlyArray<ContextEntry>): ReadonlyArray<ContextEntry> => {
  const quarantine = quarantineOf(visible)
  const last = visible.at(-1)?.id ?? 0
  return quarantine === null
    ? visible
    : [...visible, { id: (last + 1) as EntryId, model: [], head: null, edits: quarantine.edits }]
}

/** Damaged messages as storage gives them: rows that are no messages at all are refused when they are read. */
const storedHistory = fc
  .tuple(damagedHistory, damagedHistory)
  .map(([some, more]) => [...some, ...more].filter(Schema.is(Message)))

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })
const call = (id: string, name = "read") => ({ type: "toolCall", id, name, arguments: {} }) as const
const answer = (...content: Extract<Message, { role: "assistant" }>["content"]): Message => ({
  role: "assistant",
  content,
  model: "p/m",
  stopReason: "stop",
})

describe("the quarantine of a context", () => {
  it("is nothing where every provider takes it", () => {
    fc.assert(
      fc.property(validHistory, (history) => {
        expect(quarantineOf(entries(history))).toBe(null)
      }),
      { numRuns: 1000 },
    )
  })

  it("makes any damaged one sound, and then finds nothing more", () => {
    fc.assert(
      fc.property(storedHistory, (history) => {
        const after = applied(entries(history))
        expect(faults(after)).toEqual([])
        expect(quarantineOf(after)).toBe(null)
      }),
      { numRuns: 1000 },
    )
  })

  it("makes any transcript sound, whatever heads and edits it has", () => {
    fc.assert(
      fc.property(transcript(15), (visible) => {
        const after = applied(visible)
        expect(faults(after)).toEqual([])
        expect(quarantineOf(after)).toBe(null)
      }),
      { numRuns: 1000 },
    )
  })

  it("leaves out an entry of which nothing can be sent, and says what was wrong", () => {
    const visible = entries([user("hi"), answer({ type: "text", text: " " }), user("again")])
    expect(quarantineOf(visible)).toEqual({
      edits: [{ type: "omit", entry: 2 }],
      found: [
        { entry: 2, what: "empty text part dropped" },
        { entry: 2, what: "empty answer dropped" },
      ],
    })
  })

  it("puts repaired messages in place of damaged ones and keeps their results with them", () => {
    const result: Message = { role: "tool", callId: "c", toolName: "a tool!", content: [], isError: false }
    const visible = entries([user("hi"), answer(call("c", "a tool!")), result])
    const edits = quarantineOf(visible)?.edits ?? []
    expect(edits.map((edit) => [edit.type, edit.entry])).toEqual([
      ["replace", 2],
      ["replace", 3],
    ])
    const [, assistant, tool] = deriveContext(applied(visible))
    expect(assistant).toMatchObject({ content: [{ name: "a_tool_" }] })
    expect(tool).toMatchObject({ callId: "c", toolName: "a_tool_" })
  })

  it("does not look at answers that are never sent", () => {
    const aborted: Message = { role: "assistant", content: [], model: "p/m", stopReason: "aborted" }
    expect(quarantineOf(entries([user("hi"), aborted]))).toBe(null)
  })
})
