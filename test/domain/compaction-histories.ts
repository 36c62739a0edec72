/**
 * Arbitrary histories as the engine writes them, for the properties of compaction: turns with calls and their results, prompt changes, large
 * results, aborted answers, edits, earlier compactions and resets, and sometimes a batch in flight at the end.
 */
import fc from "fast-check"
import type { ContextEntry } from "../../src/domain/context.ts"
import { EntryKind } from "../../src/domain/entry.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import type { Message } from "../../src/domain/message.ts"
import { text } from "../../src/domain/message.ts"

const filler = "word ".repeat(400)
const words = fc.integer({ min: 1, max: 400 }).map((n) => filler.slice(0, 5 * n))

interface Turn {
  readonly input: string | null
  readonly steps: ReadonlyArray<{ readonly said: string; readonly results: ReadonlyArray<number> }>
  readonly answer: string | null
  readonly system: "sections" | "addTool" | "removeTool" | null
  readonly aborted: boolean
  readonly edit: "omit" | "replace" | null
}

const turn: fc.Arbitrary<Turn> = fc.record({
  input: fc.option(words, { nil: null, freq: 8 }),
  steps: fc.array(
    fc.record({ said: words, results: fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1, maxLength: 2 }) }),
    { maxLength: 2 },
  ),
  answer: fc.option(words, { nil: null, freq: 6 }),
  system: fc.option(fc.constantFrom("sections", "addTool", "removeTool"), { nil: null, freq: 3 }),
  aborted: fc.boolean(),
  edit: fc.option(fc.constantFrom("omit", "replace"), { nil: null, freq: 6 }),
})

const tool = (name: string) => ({ name, description: `does ${name}`, parameters: { type: "object" } })

export interface History {
  readonly entries: ReadonlyArray<ContextEntry>
  /** Ids of the calls in flight at the end. */
  readonly inFlight: ReadonlyArray<string>
}

/** Builds a transcript from turns; `open` leaves the last batch without the results of its last call. */
const build = (turns: ReadonlyArray<Turn>, open: boolean, reset: boolean): History => {
  const entries: Array<ContextEntry> = []
  const add = (kind: string, model: ReadonlyArray<Message>, more: Partial<ContextEntry> = {}) => {
    const id = (entries.length * 2 + 1) as EntryId
    entries.push({ id, kind, model, head: null, edits: [], data: null, ...more })
    return id
  }
  const user = (value: string): Message => ({ role: "user", content: [text(value)] })
  add(EntryKind.user, [user("first input")])
  add(EntryKind.system, [
    {
      role: "system",
      sections: [
        { name: "identity", text: "You are an agent." },
        { name: "instructions", text: "Always answer in rhymes." },
      ],
      addTools: [tool("read"), tool("write")],
      removeTools: [],
    },
  ])
  let inFlight: ReadonlyArray<string> = []
  turns.forEach((one, t) => {
    if (one.input !== null) add(EntryKind.user, [user(`${t}: ${one.input}`)])
    if (one.system !== null) {
      add(EntryKind.system, [
        {
          role: "system",
          sections: one.system === "sections" ? [{ name: "environment", text: `turn ${t}` }] : [],
          addTools: one.system === "addTool" ? [tool(`extra_${t}`)] : [],
          removeTools: one.system === "removeTool" ? ["write"] : [],
        },
      ])
    }
    one.steps.forEach((step, s) => {
      const calls = step.results.map((_, k) => `call-${t}-${s}-${k}`)
      const last = open && t === turns.length - 1 && s === one.steps.length - 1
      add(EntryKind.assistant, [
        {
          role: "assistant",
          content: [
            text(step.said),
            ...calls.map((id) => ({
              type: "toolCall" as const,
              id,
              name: "read",
              arguments: { path: `/src/${id}.ts` },
            })),
          ],
          model: "test/model",
          stopReason: "tool_calls",
        },
      ])
      const finished = last ? calls.slice(0, -1) : calls
      if (last) inFlight = calls.slice(-1)
      finished.forEach((callId, k) => {
        const content = [text("line ".repeat(step.results[k] ?? 1))]
        add(EntryKind.toolResult, [{ role: "tool", callId, toolName: "read", content, isError: false }])
      })
    })
    if (inFlight.length > 0) return
    if (one.aborted) {
      const content = [text("broken off")]
      add(EntryKind.assistant, [{ role: "assistant", content, model: "test/model", stopReason: "aborted" }])
    }
    if (one.answer !== null) {
      const content = [text(one.answer)]
      add(EntryKind.assistant, [{ role: "assistant", content, model: "test/model", stopReason: "stop" }])
    }
    const target = entries.findLast((entry) => entry.kind === EntryKind.user)
    if (one.edit !== null && target !== undefined) {
      const edit =
        one.edit === "omit"
          ? ({ type: "omit", entry: target.id } as const)
          : ({ type: "replace", entry: target.id, model: [user("replaced")] } as const)
      add("note", [], { edits: [edit] })
    }
    if (reset && t === 1) {
      const id = (entries.length * 2 + 1) as EntryId
      add(EntryKind.reset, [user("We were fixing the flaky login test.")], { head: id })
    }
  })
  return { entries, inFlight }
}

/** A history of up to `turns` turns. */
export const historyOf = (turns: number): fc.Arbitrary<History> =>
  fc
    .record({ turns: fc.array(turn, { minLength: 1, maxLength: turns }), open: fc.boolean(), reset: fc.boolean() })
    .map((given) => build(given.turns, given.open, given.reset))

export const history = historyOf(4)
