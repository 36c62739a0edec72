/**
 * The questions of one session that an editor was asked. It owns the requests to the editor: each ends with its answer, with its question
 * (settled elsewhere: `withdraw`), or with the session. What an editor answers goes to the conversation, where the first answer counts.
 */
import { Effect, FiberSet, type Scope } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { QuestionAnswer, QuestionView } from "../../domain/question.ts"
import type { Editor } from "./editor.ts"
import { type Ask, choicesAnswer, formAnswer, type PermissionParams, permissionAnswer } from "./question.ts"

export interface Asking {
  readonly ask: (question: QuestionView, ask: Ask) => void
  readonly withdraw: (questionId: TaskId) => void
  /** All of them: their turn is being cancelled. */
  readonly withdrawAll: () => void
}

export interface AskingParts {
  readonly sessions: SessionsService
  readonly editor: Editor
  readonly sessionId: string
  readonly principal: string
  /** What the editor calls itself, for those who come later. */
  readonly client: string
}

/** Lets what the editor said before take effect: a cancel that came ahead of the answer to a question. */
const afterwards = Effect.async<void>((resume) => {
  setImmediate(() => resume(Effect.void))
})

export const makeAsking = (parts: AskingParts): Effect.Effect<Asking, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { client, editor, principal, sessionId, sessions } = parts
    const fork = yield* FiberSet.makeRuntime<never>()
    const open = new Map<TaskId, AbortController>()
    yield* Effect.addFinalizer(() => Effect.sync(() => withdrawAll()))

    const withdraw = (questionId: TaskId) => {
      open.get(questionId)?.abort()
      open.delete(questionId)
    }
    const withdrawAll = () => {
      for (const questionId of [...open.keys()]) withdraw(questionId)
    }

    /** The chosen option, or null where the editor chose none. */
    const choose = async (params: PermissionParams, signal: AbortSignal): Promise<string | null> => {
      const { outcome } = await editor.permission(sessionId, params, signal)
      return outcome.outcome === "selected" ? outcome.optionId : null
    }

    const answerOf = async (question: QuestionView, ask: Ask, signal: AbortSignal): Promise<QuestionAnswer | null> => {
      if (ask.by === "others") return null
      if (ask.by === "permission") {
        const option = await choose(ask.params, signal)
        return option === null ? "reject_once" : (permissionAnswer(option) ?? "reject_once")
      }
      if (question.kind !== "choice") return null
      if (ask.by === "form") return formAnswer(question, await editor.form(sessionId, ask.params, signal))
      const chosen: Array<string> = []
      for (const params of ask.params) {
        const option = await choose(params, signal)
        if (option === null) return "reject_once"
        chosen.push(option)
      }
      return choicesAnswer(question, chosen)
    }

    const asked = (question: QuestionView, ask: Ask, controller: AbortController): Effect.Effect<void> =>
      Effect.gen(function* () {
        const { question_id: questionId } = question
        const answer = yield* Effect.tryPromise(() => answerOf(question, ask, controller.signal))
        yield* afterwards
        if (answer === null || controller.signal.aborted) return
        const requestId = `acp:${sessionId}:${questionId}`
        yield* sessions.answer({ questionId, answer, requestId, client, principal })
      }).pipe(
        // Withdrawn, answered by somebody else first, or an editor that cannot ask: the question is for others then.
        Effect.catchAll((error) => Effect.logDebug("a question was not answered here", error)),
        Effect.ensuring(
          Effect.sync(() => void (open.get(question.question_id) === controller && open.delete(question.question_id))),
        ),
      )

    return {
      ask: (question, ask) => {
        if (open.has(question.question_id)) return
        const controller = new AbortController()
        open.set(question.question_id, controller)
        fork(asked(question, ask, controller))
      },
      withdraw,
      withdrawAll,
    }
  })
