/**
 * The ten context rules over conversations that fork, against a model that shares nothing with the program.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { appendEntry, type ContextState, contextOf, contextState, deriveContext } from "../../src/domain/context.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { grow, type ModelEntry, modelContext, modelVisible, steps } from "./rules-model.ts"

describe("the ten context rules", () => {
  it("give what the model gives, in every conversation of any world", () => {
    fc.assert(
      fc.property(steps(40), (all) => {
        const world = grow(all)
        for (const conversation of world.keys()) {
          const visible = modelVisible(world, conversation)
          expect(deriveContext(visible)).toEqual(modelContext(visible))
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it("hold at every cutoff of a transcript", () => {
    fc.assert(
      fc.property(steps(20), fc.nat(20), (all, length) => {
        const world = grow(all)
        const visible = modelVisible(world, world.length - 1).slice(0, length)
        expect(deriveContext(visible)).toEqual(modelContext(visible))
      }),
      { numRuns: 1_000 },
    )
  })

  it("hold while conversations grow in turn, each from what it branched off with", () => {
    fc.assert(
      fc.property(steps(30), (all) => {
        const growing = new Map<number, ContextState>([[0, contextState([])]])
        grow(all, (world, { conversation, entry }) => {
          const before = growing.get(conversation)
          const state =
            entry === null || before === undefined
              ? contextState(modelVisible(world, conversation))
              : appendEntry(before, entry)
          growing.set(conversation, state)
          expect(contextOf(state)).toEqual(modelContext(modelVisible(world, conversation)))
        })
      }),
      { numRuns: 1_000 },
    )
  })

  it("give a late result to the second of two calls with one id", () => {
    const call = (id: number) => ({
      id: id as EntryId,
      head: null,
      edits: [],
      model: [
        {
          role: "assistant" as const,
          content: [{ type: "toolCall" as const, id: "d", name: "tool", arguments: {} }],
          model: "test/model",
          stopReason: "tool_calls" as const,
        },
      ],
    })
    const result = (id: number, value: string) => ({
      id: id as EntryId,
      head: null,
      edits: [],
      model: [{ role: "tool" as const, callId: "d", toolName: "tool", content: [text(value)], isError: false }],
    })
    const all: ReadonlyArray<ModelEntry> = [call(1), call(2), result(3, "first"), result(4, "second")]
    const grown = all.reduce((state, one) => appendEntry(state, one), contextState([]))
    expect(contextOf(grown)).toEqual(modelContext(all))
  })

  it("leave the parent's context as it is, whatever its forks write", () => {
    fc.assert(
      fc.property(steps(15), steps(15), (first, more) => {
        const before = grow(first)
        fc.pre(modelVisible(before, 0).length > 0)
        const conversations = before.length
        const after = grow([
          ...first,
          { type: "fork", from: 0, at: 0 },
          // What follows goes to the fork.
          ...more.map((step) => (step.type === "append" ? { ...step, to: conversations } : step)),
        ])
        for (const conversation of before.keys()) {
          expect(modelContext(modelVisible(after, conversation))).toEqual(
            deriveContext(modelVisible(before, conversation)),
          )
        }
      }),
      { numRuns: 1_000 },
    )
  })
})
