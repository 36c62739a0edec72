/**
 * The ten context rules against a slow, obvious model, and the growing form against the definition.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { appendEntry, contextOf, contextState, deriveContext, missingResultText } from "../../src/domain/context.ts"
import type { Message } from "../../src/domain/message.ts"
import { applySystem, diffPrompt, emptyPrompt, promptOf } from "../../src/domain/prompt.ts"
import { type TestEntry, transcript } from "./transcripts.ts"

/** The rules one after another, each as its sentence says, with no care for cost. */
const slow = (visible: ReadonlyArray<TestEntry>): ReadonlyArray<Message> => {
  // 1: the newest visible entry that carries a head.
  const heads = visible.filter((entry) => entry.head !== null)
  const h = heads[heads.length - 1]
  // 2 and 3: the range.
  let range = [...visible]
  if (h !== undefined) {
    while (range.length > 0 && range[0]?.id !== h.head) range.shift()
    if (range.length === 0) range = visible.slice(visible.indexOf(h))
  }
  // 5: H first, then what carries no head.
  const ordered = h === undefined ? range : [h, ...range.filter((entry) => entry.head === null)]
  // 4: for each target the newest edit wins.
  const modelOf = (target: TestEntry): ReadonlyArray<Message> => {
    const byAge = [...range].sort((a, b) => b.id - a.id)
    for (const entry of byAge) {
      const mine = entry.edits.filter((edit) => edit.entry === target.id)
      const newest = mine[mine.length - 1]
      if (newest !== undefined) return newest.type === "omit" ? [] : newest.model
    }
    return target.model
  }
  // 6 and 9.
  let messages = ordered
    .flatMap(modelOf)
    .filter((m) => m.role !== "assistant" || !["aborted", "error", "deferred"].includes(m.stopReason))
  // 7 and 8: one assistant message at a time, taking its results from behind it.
  for (let at = 0; at < messages.length; at++) {
    const message = messages[at]
    if (message?.role !== "assistant") continue
    let place = at + 1
    for (const call of message.content) {
      if (call.type !== "toolCall") continue
      const from = messages.findIndex((m, i) => i >= place && m.role === "tool" && m.callId === call.id)
      const found: Message =
        from >= 0
          ? (messages[from] as Message)
          : {
              role: "tool",
              callId: call.id,
              toolName: call.name,
              content: [{ type: "text", text: missingResultText }],
              isError: true,
            }
      const rest = messages.filter((_, i) => i !== from)
      messages = [...rest.slice(0, place), found, ...rest.slice(place)]
      place++
    }
    at = place - 1
  }
  const wanted = new Set<Message>()
  messages.forEach((m, i) => {
    if (m.role !== "assistant") return
    const count = m.content.filter((part) => part.type === "toolCall").length
    for (let k = 1; k <= count; k++) wanted.add(messages[i + k] as Message)
  })
  messages = messages.filter((m) => m.role !== "tool" || wanted.has(m))
  // 10.
  const firstOther = messages.findIndex((m) => m.role !== "system" && m.role !== "user")
  const opening = firstOther < 0 ? messages : messages.slice(0, firstOther)
  const isSystem = (m: Message) => m.role === "system"
  return [...opening.filter(isSystem), ...opening.filter((m) => !isSystem(m)), ...messages.slice(opening.length)]
}

describe("the model context", () => {
  it("is what the ten rules say, for any transcript", () => {
    fc.assert(
      fc.property(transcript(), (entries) => {
        expect(deriveContext(entries)).toEqual(slow(entries))
      }),
      { numRuns: 1_000 },
    )
  })

  it("grows entry by entry to the same messages and the same prompt as when derived at once", () => {
    fc.assert(
      fc.property(transcript(30), fc.nat(30), (entries, start) => {
        let state = contextState(entries.slice(0, start))
        for (const entry of entries.slice(start)) {
          state = appendEntry(state, entry)
          expect(contextOf(state)).toEqual(deriveContext(state.entries.slice()))
        }
        expect(contextOf(state)).toEqual(deriveContext(entries))
        expect(state.prompt).toEqual(promptOf(deriveContext(entries)))
      }),
      { numRuns: 1_000 },
    )
  })

  it("gives every call exactly one result, right behind its message and in call order", () => {
    fc.assert(
      fc.property(transcript(), (entries) => {
        const messages = deriveContext(entries)
        let results = 0
        messages.forEach((message, at) => {
          if (message.role !== "assistant") return
          const calls = message.content.filter((part) => part.type === "toolCall")
          calls.forEach((call, k) => {
            const behind = messages[at + 1 + k]
            expect(behind).toMatchObject({ role: "tool", callId: call.id })
          })
          results += calls.length
        })
        expect(messages.filter((message) => message.role === "tool")).toHaveLength(results)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe("a prompt change", () => {
  it("turns one prompt into the other, and is null only between equal prompts", () => {
    const tool = fc.record({
      name: fc.constantFrom("read", "write", "bash"),
      description: fc.constantFrom("x", "y"),
      parameters: fc.constant({}),
    })
    const prompt = fc
      .record({
        sections: fc.uniqueArray(fc.tuple(fc.constantFrom("a", "b", "c"), fc.constantFrom("1", "2")), {
          selector: ([name]) => name,
        }),
        tools: fc.uniqueArray(tool, { selector: ({ name }) => name }),
      })
      .map(({ sections, tools }) => ({
        sections: new Map(sections),
        tools: new Map(tools.map((each) => [each.name, each])),
      }))
    fc.assert(
      fc.property(prompt, prompt, (from, to) => {
        const change = diffPrompt(from, to)
        const after = change === null ? from : applySystem(from, change)
        expect(Object.fromEntries(after.sections)).toEqual(Object.fromEntries(to.sections))
        expect(Object.fromEntries(after.tools)).toEqual(Object.fromEntries(to.tools))
        if (change === null) expect(from.sections.size).toBe(to.sections.size)
      }),
      { numRuns: 1_000 },
    )
    expect(diffPrompt(emptyPrompt, emptyPrompt)).toBeNull()
  })
})
