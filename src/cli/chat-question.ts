/**
 * The questions of a chat: which are open, which one a typed line answers, and the answers so far of one that asks several things. Pure.
 * The oldest open question is the one that is answered; what is no answer to it (a command, a line for the running turn) passes by.
 */
import { Either } from "effect"
import type { Event } from "../domain/event.ts"
import type { TaskId } from "../domain/ids.ts"
import type { ChoiceAnswers, QuestionAnswer, QuestionView } from "../domain/question.ts"
import { choiceLines, questionLines } from "../protocols/terminal/question.ts"
import { readAnswer, readChoice } from "./question-answer.ts"

export interface Questions {
  readonly open: ReadonlyArray<QuestionView>
  /** Of the oldest: what was answered of it. */
  readonly answers: ChoiceAnswers
}

export const noQuestions: Questions = { open: [], answers: {} }

/** What an event changes. */
export const learn = (now: Questions, event: Event): Questions => {
  switch (event.type) {
    case "snapshot": {
      const { questions } = event.session
      const same = questions[0]?.question_id === now.open[0]?.question_id
      return { open: questions, answers: same ? now.answers : {} }
    }
    case "permission_request":
      return withOne(now, { ...event, kind: "permission" })
    case "ui_request":
      return withOne(now, { ...event, kind: "choice" })
    case "question_settled":
      return without(now, event.question_id)
    default:
      return now
  }
}

const withOne = (now: Questions, question: QuestionView): Questions =>
  now.open.some((one) => one.question_id === question.question_id) ? now : { ...now, open: [...now.open, question] }

const without = (now: Questions, id: TaskId): Questions => {
  const wasFirst = now.open[0]?.question_id === id
  return { open: now.open.filter((one) => one.question_id !== id), answers: wasFirst ? {} : now.answers }
}

/** What a line is to the oldest open question. */
export type Reading =
  /** There is none, or the line is for something else. */
  | { readonly kind: "other" }
  | { readonly kind: "fault"; readonly message: string }
  /** Part of the answer: this is asked next. */
  | { readonly kind: "more"; readonly questions: Questions; readonly lines: ReadonlyArray<string> }
  | { readonly kind: "answer"; readonly id: TaskId; readonly answer: QuestionAnswer; readonly questions: Questions }

export const readQuestionLine = (now: Questions, line: string): Reading => {
  const [question] = now.open
  if (question === undefined || line.trim() === "" || /^[/!]/.test(line.trim())) return { kind: "other" }
  if (question.kind === "permission") {
    return Either.match(readAnswer(question, [line]), {
      // A sentence is a prompt; a word is a slip.
      onLeft: (message): Reading => (/\s/.test(line.trim()) ? { kind: "other" } : { kind: "fault", message }),
      onRight: (answer) => answered(now, question, answer),
    })
  }
  const choice = question.questions.find((one) => now.answers[one.id] === undefined)
  if (choice === undefined) return { kind: "other" }
  return Either.match(readChoice(choice, line), {
    onLeft: (message): Reading => ({ kind: "fault", message }),
    onRight: (part) => {
      const answers = { ...now.answers, [choice.id]: part }
      const next = question.questions.find((one) => answers[one.id] === undefined)
      return next === undefined
        ? answered(now, question, answers)
        : { kind: "more", questions: { ...now, answers }, lines: choiceLines(next) }
    },
  })
}

const answered = (now: Questions, { question_id: id }: QuestionView, answer: QuestionAnswer): Reading => ({
  kind: "answer",
  id,
  answer,
  // Shown no more at once: the event that says so may come late.
  questions: without(now, id),
})

/** The oldest open question rejected, or null where none is open. */
export const rejection = (now: Questions): Extract<Reading, { readonly kind: "answer" }> | null => {
  const [question] = now.open
  const reading = question === undefined ? null : answered(now, question, "reject_once")
  return reading?.kind === "answer" ? reading : null
}

/** The lines of the question that is asked now, where another one was answered before it. */
export const nextLines = ({ open }: Questions): ReadonlyArray<string> => {
  const [question] = open
  return question === undefined ? [] : questionLines(question)
}
