/**
 * The questions of a chat on a terminal: typed lines that answer them, Esc and Ctrl-C that reject them. From anything but a terminal nobody
 * can answer.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Event } from "../domain/event.ts"
import type { Failure } from "../domain/failure.ts"
import type { QuestionView } from "../domain/question.ts"
import { learn, nextLines, noQuestions, type Reading, readQuestionLine, rejection } from "./chat-question.ts"
import type { ChatScreen } from "./chat-screen.ts"
import { lineOf } from "./runtime.ts"

export interface ChatAsks {
  readonly event: (event: Event) => void
  /** Forgets the conversation, for another one. */
  readonly reset: () => void
  /** Takes a line that answers the open question; false where it is for something else. */
  readonly line: (line: string) => Effect.Effect<boolean>
  /** Whether there is a question that a line here can answer. */
  readonly isOpen: () => boolean
  /** Rejects the open question, where there is one. */
  readonly reject: Effect.Effect<void>
}

export const makeChatAsks = (chat: {
  readonly sessions: SessionsService
  readonly screen: ChatScreen
  readonly interactive: boolean
}): ChatAsks => {
  const { interactive, screen, sessions } = chat
  let now = noQuestions
  /** A permission that somebody else settled while its options stood here; until the next line. */
  let missed: QuestionView | null = null

  const show = (lines: ReadonlyArray<string>) => {
    if (lines.length > 0) screen.remark(lines.join("\n"))
  }

  /** Sends an answer. One that was not taken is said, and the question is asked again while it is open. */
  const send = ({ answer, id, questions }: Extract<Reading, { readonly kind: "answer" }>): Effect.Effect<void> => {
    const question = now.open.find((one) => one.question_id === id)
    now = questions
    const refused = (error: Failure) => {
      screen.remark(lineOf(error), "error")
      const over = error._tag === "Refused" || error._tag === "NotFound" || question === undefined
      if (!over) now = { open: [question, ...now.open.filter((one) => one !== question)], answers: {} }
    }
    const client = `chat of process ${process.pid}`
    return Effect.match(sessions.answer({ questionId: id, answer, requestId: crypto.randomUUID(), client }), {
      onFailure: refused,
      onSuccess: () => undefined,
    }).pipe(Effect.zipRight(Effect.sync(() => show(nextLines(now)))))
  }

  return {
    event: (event) => {
      if (event.type === "question_settled") {
        missed = now.open.find((one) => one.question_id === event.question_id && one.kind === "permission") ?? missed
      }
      now = learn(now, event)
    },
    reset: () => {
      now = noQuestions
      missed = null
    },
    line: (line) =>
      Effect.suspend(() => {
        const reading: Reading = interactive ? readQuestionLine(now, line) : { kind: "other" }
        const late = missed
        missed = null
        if (interactive && late !== null && now.open.length === 0) {
          const settled = readQuestionLine({ open: [late], answers: {} }, line).kind === "answer"
          if (settled)
            screen.remark("that question was settled before; this line was not taken for a prompt", "warning")
          if (settled) return Effect.succeed(true)
        }
        switch (reading.kind) {
          case "other":
            return Effect.succeed(false)
          case "fault":
            screen.remark(reading.message, "error")
            return Effect.succeed(true)
          case "more":
            now = reading.questions
            show(reading.lines)
            return Effect.succeed(true)
          case "answer":
            return Effect.as(send(reading), true)
        }
      }),
    isOpen: () => interactive && now.open.length > 0,
    reject: Effect.suspend(() => {
      const reading = interactive ? rejection(now) : null
      return reading === null ? Effect.void : send(reading)
    }),
  }
}
