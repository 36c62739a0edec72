/**
 * The size of a context against the plain rule, and the scan that makes it cheap.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { AppendLog, Scan } from "../../src/domain/append-log.ts"
import { appendEntry, type ContextEntry, type ContextState, contextOf, contextState } from "../../src/domain/context.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { Message } from "../../src/domain/message.ts"
import { contextTokens, estimateMessages } from "../../src/domain/token-estimate.ts"

const usage = fc.record({
  input: fc.nat(5_000),
  output: fc.nat(500),
  cacheRead: fc.constant(0),
  cacheWrite: fc.constant(0),
  reasoning: fc.constant(0),
})

const message: fc.Arbitrary<Message> = fc.oneof(
  fc.string({ maxLength: 40 }).map((said): Message => ({ role: "user", content: [{ type: "text", text: said }] })),
  fc
    .record({ said: fc.string({ maxLength: 40 }), usage: fc.option(usage), ended: fc.constantFrom("stop", "aborted") })
    .map(
      ({ ended, said, usage: took }): Message => ({
        role: "assistant",
        content: [{ type: "text", text: said }],
        model: "m/x",
        stopReason: ended === "stop" ? "stop" : "aborted",
        ...(took === null ? {} : { usage: took }),
      }),
    ),
  fc.string({ minLength: 1, maxLength: 3 }).map(
    (id): Message => ({
      role: "assistant",
      content: [{ type: "toolCall", id, name: "t", arguments: {} }],
      model: "m/x",
      stopReason: "tool_calls",
    }),
  ),
)

/** An entry of any kind; `back` says how far behind it its head or edit points. */
const draft = fc.record({
  model: fc.array(message, { maxLength: 2 }),
  kind: fc.constantFrom("plain", "plain", "plain", "plain", "head", "edit"),
  back: fc.nat(4),
})

const entries = fc.array(draft, { maxLength: 14 }).map((drafts) =>
  drafts.map(({ back, kind, model }, at): ContextEntry => {
    const target = Math.max(1, at + 1 - back) as EntryId
    return {
      id: (at + 1) as EntryId,
      model,
      head: kind === "head" ? target : null,
      edits: kind === "edit" ? [{ type: "omit", entry: target }] : [],
    }
  }),
)

/** The rule, told plainly. */
const plainly = (all: ReadonlyArray<ContextEntry>, state: ContextState): number => {
  const of = (entry: ContextEntry) =>
    entry.model.find(
      (one) =>
        one.role === "assistant" && one.stopReason !== "aborted" && one.usage !== undefined && one.usage.input > 0,
    )
  for (let at = all.length - 1; at >= 0; at--) {
    const entry = all[at]
    if (entry === undefined || entry.head !== null || entry.edits.length > 0) break
    const response = of(entry)
    if (response?.role !== "assistant" || response.usage === undefined) continue
    const since = all.slice(at + 1).flatMap((one) => one.model)
    return response.usage.input + response.usage.output + estimateMessages(since)
  }
  return estimateMessages(contextOf(state))
}

describe("the tokens of a context", () => {
  it("are those that the newest response reported and an estimate of what came since, at every step of any history", () => {
    fc.assert(
      fc.property(entries, (all) => {
        let state = contextState([])
        all.forEach((entry, at) => {
          state = appendEntry(state, entry)
          expect(contextTokens(state)).toBe(plainly(all.slice(0, at + 1), state))
        })
        expect(contextTokens(contextState(all))).toBe(plainly(all, contextState(all)))
      }),
      { numRuns: 1_000 },
    )
  })
})

describe("a scan of a growing list", () => {
  it("gives every version what its own elements add up to, in whatever order versions are grown and asked", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(6), fc.nat(9), fc.boolean()), { maxLength: 20 }), (steps) => {
        const sum = new Scan<number, number>(0, (before, item) => before + item)
        const versions: Array<{ readonly log: AppendLog<number>; readonly items: ReadonlyArray<number> }> = [
          { log: AppendLog.from<number>([]), items: [] },
        ]
        for (const [of, item, asks] of steps) {
          const from = versions[of % versions.length]
          if (from === undefined) continue
          versions.push({ log: from.log.append([item]), items: [...from.items, item] })
          if (asks) from.log.scan(sum)
        }
        for (const { items, log } of versions) expect(log.scan(sum)).toBe(items.reduce((a, b) => a + b, 0))
      }),
      { numRuns: 1_000 },
    )
  })

  it("looks at each element once", () => {
    let looked = 0
    const count = new Scan<number, number>(0, (before) => {
      looked++
      return before + 1
    })
    let log = AppendLog.from([1, 2, 3])
    for (let item = 0; item < 10; item++) {
      log = log.append([item])
      log.scan(count)
    }
    expect(looked).toBe(13)
  })
})
