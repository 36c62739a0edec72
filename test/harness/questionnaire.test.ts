/**
 * Plugin Questionnaire: what a model may ask, what a person is asked of it, and what the model and programs get back. How it goes with a real
 * node, crashes included, is in test/questions.
 */
import { Effect, Either, Schema } from "effect"
import { describe, expect, it } from "vitest"
import type { Json, JsonObject } from "../../src/domain/json.ts"
import { textOf } from "../../src/domain/message.ts"
import type { AskOutcome } from "../../src/domain/question.ts"
import { askQuestion, questionnaire } from "../../src/harness/plugins/questionnaire.ts"
import type { ToolQuestion } from "../../src/tools/tool.ts"
import { contextOf } from "../tools/support.ts"

const options = (given: JsonObject = {}) => Schema.decodeSync(questionnaire.options)(given)

/** Runs the tool for a person who gives this outcome; what was asked, and the result. */
const run = (args: JsonObject, outcome: AskOutcome | null, given: JsonObject = {}) => {
  const asked: Array<ToolQuestion> = []
  const ask = (question: ToolQuestion) => {
    asked.push(question)
    return Effect.succeed(outcome ?? { type: "expired" as const })
  }
  const tool = askQuestion(options(given))
  const workspace = { root: "/", confined: true }
  const context = { ...contextOf(workspace), ...(outcome === null ? {} : { ask }) }
  const result = Effect.runSync(Effect.either(tool.execute(args as Json, context)))
  return { asked, result }
}

const colour = { question: "Which colour?", options: [{ label: "red" }, { label: "blue", description: "calm" }] }
const answered: AskOutcome = { type: "answered", by: "ann", answers: { q1: { selected: ["blue"], text: null } } }

describe("ask_question", () => {
  it("asks what the model asks, each thing under a name of its own", () => {
    const { asked } = run({ questions: [colour, { id: "why", question: "Why?" }] }, answered)
    expect(asked).toEqual([
      {
        title: "Which colour?",
        questions: [
          {
            id: "q1",
            text: "Which colour?",
            options: [
              { id: "red", label: "red" },
              { id: "blue", label: "blue", description: "calm" },
            ],
            multiple: false,
            freeText: false,
          },
          { id: "why", text: "Why?", options: [], multiple: false, freeText: true },
        ],
      },
    ])
  })

  it("gives the model lines and programs the answers", () => {
    const { result } = run({ questions: [colour] }, answered)
    if (Either.isLeft(result)) throw new Error(result.left.message)
    expect(textOf(result.right.output)).toBe("Which colour? → blue")
    expect(result.right.structuredOutput).toEqual({ answers: { q1: { selected: ["blue"], text: null } } })
    expect(result.right.isError).toBeUndefined()
  })

  it.each<[AskOutcome, string, RegExp]>([
    [{ type: "denied", answer: "reject_once", by: "ann" }, "denied", /^The person \(ann\) declined/],
    [{ type: "expired" }, "expired", /^Nobody answered in time/],
    [{ type: "withdrawn", reason: "cancelled" }, "withdrawn", /withdrawn \(cancelled\)/],
    [{ type: "nobody", reason: "a subagent asks nobody" }, "nobody", /^Nobody could be asked: a subagent/],
  ])("tells %o apart", (outcome, result, words) => {
    const ended = run({ questions: [colour] }, outcome).result
    if (Either.isLeft(ended)) throw new Error(ended.left.message)
    expect(ended.right).toMatchObject({ isError: true, details: { question: { result } } })
    expect(textOf(ended.right.output)).toMatch(words)
  })

  it("fails at once outside of a conversation", () => {
    const { asked, result } = run({ questions: [colour] }, null)
    expect(asked).toEqual([])
    expect(Either.getOrThrow(result)).toMatchObject({ isError: true, details: { question: { result: "nobody" } } })
  })

  it.each<[JsonObject, RegExp]>([
    [{ questions: [] }, /questions/],
    [{ questions: [{ question: "" }] }, /questions\[0\]\.question/],
    [{ questions: [colour], titel: "x" }, /title/],
  ])("refuses %j with what was expected", (args, words) => {
    const checked = Effect.runSync(Effect.either(askQuestion(options()).decode(args)))
    expect(Either.isLeft(checked) ? checked.left.detail : "").toMatch(words)
  })

  it("refuses names and labels that are there twice", () => {
    const twice = [
      {
        questions: [
          { id: "a", ...colour },
          { id: "a", ...colour },
        ],
      },
      { questions: [{ question: "Which?", options: [{ label: "red" }, { label: "red" }] }] },
    ]
    for (const args of twice) {
      const { asked, result } = run(args, answered)
      expect(asked).toEqual([])
      expect(Either.isLeft(result) ? result.left.message : "").toMatch(/twice/)
    }
  })

  it("may run again after a crash, and only reads", () => {
    const tool = askQuestion(options())
    expect(tool).toMatchObject({ replay: "safe", effects: ["read"] })
  })
})

describe("its options", () => {
  it("let a harness forbid texts beside options and set the time", () => {
    const given = { freeText: false, timeoutMs: 5_000 }
    const { asked } = run({ questions: [{ ...colour, allow_text: true }, { question: "Why?" }] }, answered, given)
    expect(asked).toMatchObject([{ timeoutMs: 5_000, questions: [{ freeText: false }, { freeText: true }] }])
  })

  it("let the model allow a text where nothing is said", () => {
    const { asked } = run({ questions: [{ ...colour, allow_text: true }] }, answered)
    expect(asked).toMatchObject([{ questions: [{ freeText: true }] }])
  })
})
