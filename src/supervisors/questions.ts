/**
 * Questions as the node lists and answers them. An answer goes to the conversation's machine, which alone writes its records.
 */
import { Effect } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import type { ReplyTo } from "../actors/kernel/index.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import { type Failure, NotFound } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { openQuestions } from "../domain/question.ts"
import type { StoreService } from "../storage/store.ts"

export const makeQuestions = (parts: {
  readonly store: StoreService
  readonly principalOf: (id: ConversationId) => Effect.Effect<string | null, Failure>
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
  readonly request: <A>(
    target: Target,
    message: (reply: ReplyTo<A, Failure>) => ConversationMessage,
  ) => Effect.Effect<A, Failure>
}): Pick<SessionsService, "questions" | "answer"> => {
  const { allowed, principalOf, request, store } = parts
  return {
    questions: ({ conversationId, principal = "local" }) =>
      Effect.gen(function* () {
        if (conversationId !== null) yield* allowed({ conversationId, principal })
        const open = openQuestions(yield* orStorageFailure(store.openTasks(conversationId ?? undefined)))
        return yield* Effect.filter(open, (one) =>
          Effect.map(principalOf(one.conversation_id), (owner) => owner === principal),
        )
      }),
    answer: ({ answer, client, principal = "local", questionId, requestId }) =>
      Effect.gen(function* () {
        const task = yield* orStorageFailure(store.task(questionId))
        const conversationId = task?.conversation ?? null
        const owner = conversationId === null ? null : yield* principalOf(conversationId)
        if (conversationId === null || owner !== principal) return yield* new NotFound({ what: "this question" })
        const by = client === null ? principal : `${principal}, ${client}`
        yield* request<void>({ conversationId, principal }, (reply) => ({
          type: "answerNow",
          questionId,
          answer,
          by,
          requestId,
          reply,
        }))
        return { question_id: questionId, conversation_id: conversationId, answer }
      }),
  }
}
