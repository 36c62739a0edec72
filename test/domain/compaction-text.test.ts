/**
 * The texts and numbers of compaction: token estimates, the readable older part, the digest, the summariser's request.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { appendEntry, type ContextEntry, contextOf, contextState } from "../../src/domain/context.ts"
import { EntryKind } from "../../src/domain/entry.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { digestOf, olderPart, readable } from "../../src/domain/older-part.ts"
import { summaryRequest } from "../../src/domain/summary-request.ts"
import {
  contextTokens,
  estimateMessage,
  estimateMessages,
  estimateText,
  imageTokens,
} from "../../src/domain/token-estimate.ts"
import { history } from "./compaction-histories.ts"

const user = (value: string): Message => ({ role: "user", content: [text(value)] })

const answer = (value: string, input: number, stopReason: AssistantMessage["stopReason"] = "stop"): Message => ({
  role: "assistant",
  content: [text(value)],
  model: "m",
  stopReason,
  usage: { input, output: 10, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
})

const call = (id: string, name: string, args: Readonly<Record<string, string>>): Message => ({
  role: "assistant",
  content: [{ type: "toolCall", id, name, arguments: args }],
  model: "m",
  stopReason: "tool_calls",
})

const entry = (id: number, model: ReadonlyArray<Message>, more: Partial<ContextEntry> = {}): ContextEntry => ({
  id: id as EntryId,
  kind: EntryKind.user,
  model,
  head: null,
  edits: [],
  ...more,
})

describe("an estimate of tokens", () => {
  it("is a quarter of the bytes in UTF-8", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (value) => {
        expect(estimateText(value)).toBe(Math.ceil(new TextEncoder().encode(value).length / 4))
      }),
      { numRuns: 1_000 },
    )
  })

  it("counts an image the same whatever its size", () => {
    const image = (data: string): Message => ({
      role: "user",
      content: [{ type: "image", mediaType: "image/png", data }],
    })
    expect(estimateMessage(image("A".repeat(100_000)))).toBe(estimateMessage(image("AAAA")))
    expect(estimateMessage(image("AAAA"))).toBeGreaterThanOrEqual(imageTokens)
  })

  it("of a context is what the newest response reported and an estimate of what came since", () => {
    const entries = [entry(1, [user("a")]), entry(2, [answer("b", 5_000)]), entry(3, [user("c".repeat(400))])]
    expect(contextTokens(contextState(entries))).toBe(5_010 + estimateMessages([user("c".repeat(400))]))
  })

  it("takes no report from an answer that failed, was cut off, or reported nothing", () => {
    const entries = [
      entry(1, [user("a")]),
      entry(2, [answer("b", 7_000, "error")]),
      entry(3, [answer("b", 7_000, "aborted")]),
      entry(4, [answer("b", 0)]),
    ]
    const state = contextState(entries)
    expect(contextTokens(state)).toBe(estimateMessages(contextOf(state)))
  })

  it("takes no report from before the newest head or edit: it was about another context", () => {
    const before = contextState([entry(1, [user("a".repeat(4_000))]), entry(2, [answer("b", 9_000)])])
    const after = appendEntry(before, entry(3, [user("short")], { head: 2 as EntryId }))
    expect(contextTokens(after)).toBeLessThan(100)
    const edited = appendEntry(before, entry(3, [], { edits: [{ type: "omit", entry: 1 as EntryId }] }))
    expect(contextTokens(edited)).toBeLessThan(100)
  })
})

describe("the older part as text", () => {
  it("never exceeds its budget by more than a note, and says what it leaves out", () => {
    fc.assert(
      fc.property(history, fc.integer({ min: 50, max: 20_000 }), ({ entries }, budget) => {
        const messages = contextOf(contextState(entries))
        const words = readable(messages, budget)
        expect(words.length).toBeLessThanOrEqual(budget + 200 + 2 * messages.length)
        if (readable(messages, Number.POSITIVE_INFINITY) !== words) expect(words).toMatch(/left out/)
      }),
      { numRuns: 1_000 },
    )
  })

  it("is read from the newest back: what is left out is the oldest", () => {
    const words = readable([user("first"), user("second"), user("third")], 20)
    expect(words).toBe("[2 earlier messages left out]\n\n[User]\nthird")
  })

  it("has what an earlier compaction said apart from the messages since", () => {
    const head = entry(3, [user("the words that stand for it")], {
      kind: EntryKind.compaction,
      head: 2 as EntryId,
      data: { summary: "said before" },
    })
    const older = olderPart([head, entry(2, [user("kept then")]), entry(4, [user("new")])], 2)
    expect(older).toEqual({ summary: "said before", messages: [user("kept then")] })
  })
})

describe("the digest", () => {
  it("names inputs, files and tools, and takes over what was said before", () => {
    const messages: ReadonlyArray<Message> = [
      user("fix\n the   test"),
      call("1", "read", { path: "src/a.ts" }),
      call("2", "read", { path: "src/a.ts" }),
      call("3", "bash", { command: "npm test" }),
    ]
    expect(digestOf({ summary: "earlier", messages })).toBe(
      [
        "## Said before\nearlier",
        "## Inputs\n- fix the test",
        "## Files\n- src/a.ts",
        "## Tools used\n- read: 2\n- bash: 1",
      ].join("\n\n"),
    )
  })

  it("stays short however long the conversation was", () => {
    const messages = Array.from({ length: 2_000 }, (_, n) => [
      user(`${n} ${"word ".repeat(200)}`),
      call(`${n}`, "read", { path: `src/${n}.ts` }),
    ]).flat()
    const words = digestOf({ summary: "x".repeat(100_000), messages })
    expect(words.length).toBeLessThan(30_000)
    expect(words).toContain("(1970 earlier ones left out)")
  })
})

describe("the request for a summary", () => {
  it("has the earlier summary, the wishes and the conversation, and no tool", () => {
    const older = { summary: "before", messages: [user("the conversation itself")] }
    const [system, asked] = summaryRequest(older, "keep the ports", 10_000)
    expect(system).toMatchObject({ role: "system", addTools: [] })
    const words = asked?.role === "user" ? textOf(asked.content) : ""
    expect(words).toMatch(/^Summarise the conversation below/)
    expect(words).toContain("Pay special attention to this: keep the ports")
    expect(words).toContain("<summary>\nbefore\n</summary>")
    expect(words).toContain("the conversation itself")
  })
})
