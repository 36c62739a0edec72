/**
 * Effects in doubt, as the node lists and settles them. The answer goes to the conversation's machine, which alone writes its records.
 */
import { Effect } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { ConversationMessage } from "../actors/conversation/messages.ts"
import type { ReplyTo } from "../actors/kernel/index.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import { effectsAmong } from "../domain/effect.ts"
import type { Failure } from "../domain/failure.ts"
import { NotFound } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { StoreService } from "../storage/store.ts"

/** Calls in doubt that are read before those of other people are left out. */
const readAtMost = 1_000

export const makeEffects = (parts: {
  readonly store: StoreService
  readonly principalOf: (id: ConversationId) => Effect.Effect<string | null, Failure>
  readonly request: <A>(
    target: Target,
    message: (reply: ReplyTo<A, Failure>) => ConversationMessage,
  ) => Effect.Effect<A, Failure>
}): Pick<SessionsService, "effects" | "settleEffect"> => {
  const { principalOf, request, store } = parts
  return {
    effects: ({ limit = 100, principal = "local", running = false }) =>
      Effect.gen(function* () {
        const inDoubt = yield* orStorageFailure(store.tasksInDoubt({ limit: readAtMost }))
        const open = yield* orStorageFailure(store.openTasks())
        const over = new Set(yield* orStorageFailure(store.endedEpochs(open.map(({ fence }) => fence))))
        const all = effectsAmong({ inDoubt, open, isOver: (fence) => over.has(fence), running })
        const mine = yield* Effect.filter(all, ({ conversation_id }) =>
          conversation_id === null
            ? Effect.succeed(false)
            : Effect.map(principalOf(conversation_id), (owner) => owner === principal),
        )
        return mine.slice(0, limit)
      }),
    settleEffect: ({ answer, taskId, principal = "local" }) =>
      Effect.gen(function* () {
        const task = yield* orStorageFailure(store.task(taskId))
        const conversationId = task?.conversation ?? null
        const owner = conversationId === null ? null : yield* principalOf(conversationId)
        if (conversationId === null || owner !== principal) return yield* new NotFound({ what: `call ${taskId}` })
        yield* request<void>({ conversationId, principal }, (reply) => ({ type: "settle", taskId, answer, reply }))
        return { task_id: taskId, conversation_id: conversationId, answer }
      }),
  }
}
