/**
 * What is typed at a question in a chat, and what a terminal shows of it.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { learn, noQuestions, type Questions, readQuestionLine, rejection } from "../../src/cli/chat-question.ts"
import { readAnswer } from "../../src/cli/question-answer.ts"
import { listedLines } from "../../src/cli/questions.ts"
import type { Event, EventBody } from "../../src/domain/event.ts"
import { ConversationId, TaskId } from "../../src/domain/ids.ts"
import { permissionOptions, type QuestionView } from "../../src/domain/question.ts"
import { questionLines, settledLine } from "../../src/protocols/terminal/question.ts"

const head = { call_id: "c1", created_at: 0, expires_at: 120_000 }
const permission: Extract<QuestionView, { kind: "permission" }> = {
  ...head,
  kind: "permission",
  question_id: TaskId.make(7),
  title: "Run a command?",
  tool: "bash",
  arguments: { command: "git push" },
  reason: "It is not in the allow list.",
  options: permissionOptions,
}
const choice: Extract<QuestionView, { kind: "choice" }> = {
  ...head,
  kind: "choice",
  question_id: TaskId.make(8),
  title: "Colours",
  questions: [
    {
      id: "colour",
      text: "Which?",
      options: ["red", "blue"].map((label) => ({ id: label, label })),
      multiple: true,
      freeText: false,
    },
    { id: "why", text: "Why?", options: [], multiple: false, freeText: true },
  ],
}

const event = (body: EventBody): Event =>
  // A body and its head make an event.
  ({
    ...body,
    v: 1,
    conversation_id: ConversationId.make(1),
    turn_id: null,
    timestamp_ms: 0,
    seq_no: 1,
  }) as Event

const asked = (...questions: ReadonlyArray<QuestionView>): Questions => ({ open: questions, answers: {} })

describe("a line typed at a permission", () => {
  it.each([
    ["1", "allow_once"],
    ["2", "allow_always"],
    ["3", "reject_once"],
    ["4", "reject_always"],
    ["y", "allow_once"],
    ["N", "reject_once"],
    ["allow_always", "allow_always"],
    [" Reject ", "reject_once"],
  ])("%j is %s", (line, answer) => {
    expect(readQuestionLine(asked(permission), line)).toMatchObject({ kind: "answer", id: 7, answer })
  })

  it("that is a slip is told, and the question stays", () => {
    expect(readQuestionLine(asked(permission), "5")).toMatchObject({ kind: "fault" })
  })

  it("that is a command, a steer or a sentence is for the chat", () => {
    for (const line of ["/cancel", "!stop that", "what does it push?", ""]) {
      expect(readQuestionLine(asked(permission), line)).toEqual({ kind: "other" })
    }
    expect(readQuestionLine(noQuestions, "1")).toEqual({ kind: "other" })
  })

  it("answers the oldest question that is open", () => {
    const reading = readQuestionLine(asked(permission, choice), "1")
    expect(reading).toMatchObject({ kind: "answer", id: 7, questions: { open: [{ question_id: 8 }] } })
  })
})

describe("lines typed at a choice", () => {
  it("answer one thing after the other, and are sent together", () => {
    const first = readQuestionLine(asked(choice), "1, 2")
    if (first.kind !== "more") throw new Error(first.kind)
    expect(first.lines[0]).toBe("Why?")
    expect(readQuestionLine(first.questions, "it is calm")).toMatchObject({
      kind: "answer",
      answer: { colour: { selected: ["red", "blue"] }, why: { selected: [], text: "it is calm" } },
    })
  })

  it("name what was expected, and the nearest option", () => {
    expect(readQuestionLine(asked(choice), "bleu")).toEqual({
      kind: "fault",
      message: 'expected numbers from 1 to 2, got "bleu" (nearest: blue)',
    })
  })

  it("are taken from the words of a command line as well", () => {
    expect(Either.getOrNull(readAnswer(choice, ["2", "because"]))).toEqual({
      colour: { selected: ["blue"], text: null },
      why: { selected: [], text: "because" },
    })
    expect(Either.isLeft(readAnswer(choice, ["2"]))).toBe(true)
  })
})

describe("what a chat knows to be open", () => {
  it("follows the events, and an answer of somebody else ends it", () => {
    const { kind: _, ...request } = permission
    const open = learn(noQuestions, event({ type: "permission_request", ...request }))
    expect(open.open).toEqual([expect.objectContaining({ question_id: 7 })])
    const settled = { question_id: permission.question_id, answer: "allow_once", by: "x", reason: null } as const
    expect(learn(open, event({ type: "question_settled", result: "allowed", ...settled })).open).toEqual([])
  })

  it("is rejected oldest first", () => {
    expect(rejection(asked(permission, choice))).toMatchObject({ id: 7, answer: "reject_once" })
    expect(rejection(noQuestions)).toBeNull()
  })
})

describe("a question on a terminal", () => {
  it("shows what is to run, why it is asked and the four answers", () => {
    expect(questionLines(permission)).toEqual([
      "Run a command?",
      "  bash git push",
      "  It is not in the allow list.",
      "  1) Allow once",
      "  2) Allow always in this session",
      "  3) Reject",
      "  4) Reject always in this session",
      "  (a number, y or n; Esc or Ctrl-C rejects)",
    ])
  })

  it("shows no escape sequences of a model", () => {
    const sly = { ...permission, title: "ok\u001b[2J", arguments: { command: "rm\u001b[8m -rf /" } }
    expect(questionLines(sly).join("")).not.toContain("\u001b")
  })

  it("is listed with its number, its conversation and the time that is left", () => {
    const lines = listedLines({ conversation_id: ConversationId.make(3), question: choice }, 60_000)
    expect(lines[0]).toMatch(/^8 {2}conversation 3 {2}.* left$/)
    expect(lines).toContain("  Why?")
  })

  it("says how it ended and who ended it", () => {
    expect(settledLine({ result: "allowed", answer: "allow_always", by: "ann", reason: null })).toBe(
      "allowed for this session by ann",
    )
    expect(settledLine({ result: "expired", answer: null, by: null, reason: null })).toBe("nobody answered in time")
  })
})
