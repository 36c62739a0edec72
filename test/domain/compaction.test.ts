/**
 * Compaction, pure: where it cuts, what it keeps, what it carries, and when it is stale.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type CompactionPlan, carriedData, type Goal, placement, planCompaction } from "../../src/domain/compaction.ts"
import { type CompactionMode, limitsFor, rulesFor } from "../../src/domain/compaction-settings.ts"
import {
  appendEntry,
  type ContextEntry,
  type ContextState,
  contextOf,
  contextState,
  deriveContext,
} from "../../src/domain/context.ts"
import { EntryKind } from "../../src/domain/entry.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { AssistantMessage, Message } from "../../src/domain/message.ts"
import { text, textOf, toolCallsOf } from "../../src/domain/message.ts"
import { promptOf } from "../../src/domain/prompt.ts"
import { estimateMessages } from "../../src/domain/token-estimate.ts"
import { repair, validityRules } from "../../src/domain/validity.ts"
import { history, historyOf } from "./compaction-histories.ts"

const options = (mode: CompactionMode, keep: number) => ({ mode, keep, most: 4 * keep, target: null, leastGain: 0 })

/** The entry that a plan becomes. */
const place = (
  state: ContextState,
  plan: CompactionPlan,
  given: { readonly summary?: string; readonly goals?: ReadonlyArray<Goal>; readonly todo?: string | null } = {},
): ContextEntry | null => {
  const { goals = [], summary = "the summary", todo = null } = given
  const placed = placement(state, plan, { summary, goals, todo })
  if (placed === null) return null
  const last = state.entries.slice().at(-1)
  const id = ((last?.id ?? 0) + 2) as EntryId
  const data = { carried: carriedData(placed.carried), summary }
  const head = placed.head === "self" ? id : placed.head
  return { id, kind: EntryKind.compaction, model: placed.model, head, edits: placed.edits, data }
}

/** Runs one compaction; null when there is nothing to compact. */
const compacted = (state: ContextState, mode: CompactionMode, keep: number) => {
  const plan = planCompaction(state, options(mode, keep))
  const entry = plan === null ? null : place(state, plan)
  return entry === null ? null : { plan, entry, after: appendEntry(state, entry) }
}

const conversationOf = (messages: ReadonlyArray<Message>) => messages.filter((message) => message.role !== "system")

const openCalls = (messages: ReadonlyArray<Message>): ReadonlyArray<string> => {
  const open = new Set<string>()
  for (const message of messages) {
    if (message.role === "assistant") for (const call of toolCallsOf(message)) open.add(call.id)
    if (message.role === "tool") open.delete(message.callId)
  }
  return [...open]
}

const modes = fc.constantFrom<CompactionMode>("summary", "truncate", "tool_results", "hybrid")

describe("any history, compacted", () => {
  const runs = { numRuns: 1_000 }
  const keep = fc.integer({ min: 10, max: 600 })

  it("stays valid for every provider, with each call beside its result", () => {
    fc.assert(
      fc.property(history, modes, keep, ({ entries, inFlight }, mode, room) => {
        const before = contextState(entries)
        const done = compacted(before, mode, room)
        fc.pre(done !== null)
        const messages = contextOf(done.after)
        const { messages: sent, repairs } = repair(messages, validityRules.strict)
        expect(repairs).toEqual([])
        expect(openCalls(sent)).toEqual([])
        // A call that is still in flight has its synthetic result as before, and is still there to take its own.
        const calls = new Set(
          messages.flatMap((m) => (m.role === "assistant" ? toolCallsOf(m).map(({ id }) => id) : [])),
        )
        for (const id of inFlight) expect(calls.has(id)).toBe(true)
      }),
      runs,
    )
  })

  it("keeps what is newer byte for byte, and the prompt with every tool and section", () => {
    fc.assert(
      fc.property(history, modes, keep, ({ entries }, mode, room) => {
        const before = contextState(entries)
        const done = compacted(before, mode, room)
        fc.pre(done !== null)
        const was = conversationOf(contextOf(before))
        const is = conversationOf(contextOf(done.after))
        if (done.plan?.method === "tool_results") {
          expect(is).toHaveLength(was.length)
          for (const [at, message] of is.entries()) {
            const same = JSON.stringify(message) === JSON.stringify(was[at])
            if (message.role !== "tool") expect(message).toBe(was[at])
            else if (!same) expect(textOf(message.content)).toMatch(/^\[The result of read/)
          }
        } else {
          const kept = is.slice(1)
          expect(JSON.stringify(kept)).toBe(JSON.stringify(was.slice(was.length - kept.length)))
        }
        const [from, to] = [promptOf(contextOf(before)), promptOf(contextOf(done.after))]
        expect([...to.sections].sort()).toEqual([...from.sections].sort())
        expect([...to.tools.keys()].sort()).toEqual([...from.tools.keys()].sort())
      }),
      runs,
    )
  })

  it("gives the same however often it is done in a row: nothing is lost between two", () => {
    fc.assert(
      fc.property(historyOf(2), historyOf(2), modes, modes, keep, ({ entries }, later, first, second, room) => {
        const once = compacted(contextState(entries), first, room)
        fc.pre(once !== null)
        // What comes after the first: the same conversation goes on with other turns.
        const shift = (once.entry.id as number) + 2
        const more = later.entries.slice(2).map((entry) => ({
          ...entry,
          id: ((entry.id as number) + shift) as EntryId,
          head: entry.head === null ? null : (((entry.head as number) + shift) as EntryId),
          edits: entry.edits.map((edit) => ({ ...edit, entry: ((edit.entry as number) + shift) as EntryId })),
          model: JSON.parse(JSON.stringify(entry.model).replaceAll('"call-', '"late-')) as ContextEntry["model"],
        }))
        const grown = more.reduce(appendEntry, once.after)
        const twice = compacted(grown, second, room)
        fc.pre(twice !== null)
        const was = conversationOf(contextOf(grown))
        const is = conversationOf(contextOf(twice.after))
        const kept = twice.plan?.method === "tool_results" ? [] : is.slice(1)
        expect(JSON.stringify(kept)).toBe(JSON.stringify(was.slice(was.length - kept.length)))
        expect(repair(contextOf(twice.after), validityRules.strict).repairs).toEqual([])
        expect([...promptOf(contextOf(twice.after)).tools.keys()].sort()).toEqual(
          [...promptOf(contextOf(grown)).tools.keys()].sort(),
        )
        // The growing context and the definition agree on it.
        expect(contextOf(twice.after)).toEqual(deriveContext(twice.after.entries.slice()))
      }),
      runs,
    )
  })

  it("is placed against the context as it is by then: what came meanwhile stays", () => {
    fc.assert(
      fc.property(history, keep, words, ({ entries, inFlight }, room, said) => {
        const before = contextState(entries)
        const plan = planCompaction(before, options("summary", room))
        fc.pre(plan !== null && inFlight.length === 0)
        const last = entries.at(-1)?.id ?? 0
        const late: ContextEntry = {
          id: (last + 2) as EntryId,
          kind: EntryKind.user,
          model: [{ role: "user", content: [text(said)] }],
          head: null,
          edits: [],
        }
        const grown = appendEntry(before, late)
        const entry = place(grown, plan)
        expect(entry).not.toBeNull()
        if (entry === null) return
        const messages = contextOf(appendEntry(grown, entry))
        expect(messages.at(-1)).toEqual(late.model[0])
      }),
      runs,
    )
  })

  it("is stale behind a newer head", () => {
    fc.assert(
      fc.property(history, keep, ({ entries }, room) => {
        const before = contextState(entries)
        const plan = planCompaction(before, options("summary", room))
        fc.pre(plan !== null)
        const first = place(before, plan)
        fc.pre(first !== null)
        expect(place(appendEntry(before, first), plan)).toBeNull()
      }),
      runs,
    )
  })
})

const words = fc.constantFrom("one", "two", "three")

/** A small builder for examples. */
class Transcript {
  readonly entries: Array<ContextEntry> = []

  add(kind: string, model: ReadonlyArray<Message>, more: Partial<ContextEntry> = {}): EntryId {
    const id = (this.entries.length + 1) as EntryId
    this.entries.push({ id, kind, model, head: null, edits: [], ...more })
    return id
  }
  user(value: string): EntryId {
    return this.add(EntryKind.user, [{ role: "user", content: [text(value)] }])
  }
  answer(value: string, usage?: AssistantMessage["usage"]): EntryId {
    const message: AssistantMessage = { role: "assistant", content: [text(value)], model: "m", stopReason: "stop" }
    return this.add(EntryKind.assistant, [usage === undefined ? message : { ...message, usage }])
  }
  call(id: string, result: string | null): void {
    const content = [{ type: "toolCall" as const, id, name: "read", arguments: { path: `${id}.ts` } }]
    this.add(EntryKind.assistant, [{ role: "assistant", content, model: "m", stopReason: "tool_calls" }])
    if (result === null) return
    this.add(EntryKind.toolResult, [
      { role: "tool", callId: id, toolName: "read", content: [text(result)], isError: false },
    ])
  }
  get state(): ContextState {
    return contextState(this.entries)
  }
}

const long = (n: number) => "word ".repeat(n)

const allText = (messages: ReadonlyArray<Message>): string =>
  messages.map((message) => (message.role === "system" ? "" : textOf(message.content))).join("\n")

describe("what is carried", () => {
  it("has the inputs of the run word for word, images included, whatever the summary says", () => {
    const t = new Transcript()
    const input = t.user("fix the login test, but never touch auth.ts")
    for (let n = 0; n < 6; n++) t.call(`c${n}`, long(300))
    const image = { type: "image" as const, mediaType: "image/png", data: "AAAA" }
    const goal: Goal = {
      submission: 1,
      entry: input,
      content: [text("fix the login test, but never touch auth.ts"), image],
    }
    const plan = planCompaction(t.state, options("summary", 600))
    if (plan === null) throw new Error("nothing to compact")
    const entry = place(t.state, plan, { summary: "%%% garbage", goals: [goal], todo: "- [pending] run the tests" })
    if (entry === null) throw new Error("stale")
    const messages = contextOf(appendEntry(t.state, entry))
    expect(allText(messages)).toContain("fix the login test, but never touch auth.ts")
    expect(allText(messages)).toContain("- [pending] run the tests")
    expect(messages.some((m) => m.role === "user" && m.content.includes(image))).toBe(true)
    expect(entry.data).toMatchObject({ carried: { goal: [1], todo: true } })
  })

  it("has no input that stays anyway", () => {
    const t = new Transcript()
    t.user(long(500))
    t.answer(long(500))
    const input = t.user("and now?")
    const plan = planCompaction(t.state, options("summary", 600))
    if (plan === null) throw new Error("nothing to compact")
    const goals: ReadonlyArray<Goal> = [{ submission: 1, entry: input, content: [text("and now?")] }]
    const entry = place(t.state, plan, { goals })
    if (entry === null) throw new Error("stale")
    const occurrences = allText(contextOf(appendEntry(t.state, entry))).split("and now?").length - 1
    expect(occurrences).toBe(1)
  })

  it("has the handoff of a reset, over any number of compactions", () => {
    const t = new Transcript()
    t.user("old things")
    t.add(EntryKind.reset, [{ role: "user", content: [text("We were fixing the flaky login test.")] }], {
      head: 2 as EntryId,
    })
    let state = t.state
    for (let round = 0; round < 3; round++) {
      for (let n = 0; n < 3; n++) {
        const id = (Number(state.entries.slice().at(-1)?.id) + 1) as EntryId
        const model: ReadonlyArray<Message> = [{ role: "user", content: [text(long(400))] }]
        state = appendEntry(state, { id, kind: EntryKind.user, model, head: null, edits: [], data: null })
      }
      const done = compacted(state, "summary", 600)
      if (done === null) throw new Error("nothing to compact")
      state = done.after
      expect(allText(contextOf(state)).split("We were fixing the flaky login test.")).toHaveLength(2)
    }
  })
})

describe("where it cuts", () => {
  it("splits one huge turn in front of an answer whose calls are complete", () => {
    const t = new Transcript()
    t.user("go")
    for (let n = 0; n < 10; n++) t.call(`c${n}`, long(400))
    const plan = planCompaction(t.state, options("summary", 1_200))
    const kept = t.entries.find((entry) => entry.id === plan?.cut.keep)
    expect(kept?.model[0]?.role).toBe("assistant")
    expect(plan?.cut.keep).toBeGreaterThan(10)
  })

  it("keeps a batch in flight whole, however large it is", () => {
    const t = new Transcript()
    t.user(long(400))
    t.answer(long(400))
    t.user("go")
    t.call("done", long(4_000))
    t.call("open", null)
    const plan = planCompaction(t.state, options("summary", 10))
    const first = t.entries.find((entry) => entry.id === plan?.cut.keep)
    expect(plan).not.toBeNull()
    expect(first?.model[0]).toMatchObject({ content: [{ id: "open" }] })
  })

  it("keeps nothing where the last step alone is more than may stay", () => {
    const t = new Transcript()
    t.user("go")
    t.call("huge", long(50_000))
    const plan = planCompaction(t.state, options("summary", 100))
    expect(plan?.cut).toMatchObject({ keep: null, last: t.entries.at(-1)?.id })
    const entry = plan === null ? null : place(t.state, plan)
    expect(entry?.head).toBe(entry?.id)
  })

  it("finds nothing in a conversation that fits", () => {
    const t = new Transcript()
    t.user("hello")
    t.answer("hi")
    expect(planCompaction(t.state, options("summary", 10_000))).toBeNull()
  })

  it("finds nothing behind the head that it made itself", () => {
    const t = new Transcript()
    t.user(long(500))
    t.answer(long(100))
    const done = compacted(t.state, "summary", 200)
    if (done === null) throw new Error("nothing to compact")
    expect(planCompaction(done.after, options("summary", 200))).toBeNull()
  })
})

describe("how it makes short", () => {
  const withResults = (): Transcript => {
    const t = new Transcript()
    t.user("go")
    for (let n = 0; n < 6; n++) t.call(`c${n}`, long(600))
    t.answer("done")
    return t
  }

  it("hybrid is content with stubs where they bring the context below its target", () => {
    const t = withResults()
    const all = estimateMessages(contextOf(t.state))
    const enough = planCompaction(t.state, { ...options("hybrid", 900), target: all / 2 })
    const tooLittle = planCompaction(t.state, { ...options("hybrid", 900), target: 1 })
    expect(enough?.method).toBe("tool_results")
    expect(tooLittle?.method).toBe("summary")
  })

  it("stubs say which tool it was, how long its result was and how it began", () => {
    const t = withResults()
    const done = compacted(t.state, "tool_results", 900)
    if (done === null) throw new Error("nothing to compact")
    const results = contextOf(done.after).filter((message) => message.role === "tool")
    expect(textOf(results[0]?.content ?? [])).toMatch(
      /^\[The result of read \(3000 characters\) .* It began: word word/,
    )
    expect(textOf(results.at(-1)?.content ?? [])).toBe(long(600))
    expect(estimateMessages(contextOf(done.after))).toBeLessThan(estimateMessages(contextOf(t.state)) / 2)
  })

  it("an edit that an earlier head made of what stays is made again by the next head", () => {
    const t = new Transcript()
    t.user(long(300))
    const edited = t.user(long(400))
    const from = t.answer("so far")
    const edits = [
      { type: "replace" as const, entry: edited, model: [{ role: "user" as const, content: [text("short")] }] },
    ]
    t.add("note", [], { head: 1 as EntryId, edits })
    const done = compacted(t.state, "summary", 200)
    if (done === null) throw new Error("nothing to compact")
    expect(done.entry.head).toBe(edited)
    expect(done.entry.edits).toEqual(edits)
    expect(allText(contextOf(done.after))).toMatch(/short\nso far$/)
    expect(from).toBeGreaterThan(edited)
  })

  it("an automatic one that would gain next to nothing is not made", () => {
    const t = new Transcript()
    t.user("a")
    t.answer("b")
    t.user(long(2_000))
    expect(planCompaction(t.state, { ...options("summary", 3_000), keep: 2_600, leastGain: 0.05 })).toBeNull()
  })
})

describe("the limits of a model", () => {
  it("are its window without the reserve, and start background work below that", () => {
    const limits = limitsFor(rulesFor({}, "any/model"), 200_000)
    expect(limits).toEqual({ blockAt: 183_616, backgroundAt: 150_848, keep: 20_000, most: 91_808, target: 150_848 })
  })

  it("fit a small window, and 128,000 tokens stand for an unknown one", () => {
    const small = limitsFor(rulesFor({}, "any/model"), 8_192)
    expect(small.blockAt).toBe(4_096)
    expect(small.keep).toBeLessThan(small.blockAt)
    expect(small.backgroundAt).toBeLessThan(small.blockAt)
    expect(limitsFor(rulesFor({}, "m"), null)).toEqual(limitsFor(rulesFor({}, "m"), 128_000))
  })

  it("are overridden field by field for exactly one model", () => {
    const settings = {
      reserveTokens: 1_000,
      mode: "truncate" as const,
      modelOverrides: { "local/small": { reserveTokens: 500, backgroundTokens: 0 } },
    }
    expect(rulesFor(settings, "local/small")).toMatchObject({
      reserveTokens: 500,
      backgroundTokens: 0,
      mode: "truncate",
      keepRecentTokens: 20_000,
    })
    expect(rulesFor(settings, "local/small-2")).toMatchObject({ reserveTokens: 1_000, backgroundTokens: 32_768 })
    expect(limitsFor(rulesFor(settings, "local/small"), 10_000).backgroundAt).toBeNull()
  })
})
