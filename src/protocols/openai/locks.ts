/**
 * One request after the other on one conversation: a request chooses model, mode and form for its own turn, so the next one has to wait
 * until that is over. Requests wait in the order in which they came, and none holds up another conversation.
 */
import { Effect } from "effect"
import type { ConversationId } from "../../domain/ids.ts"

export interface Locks {
  /** Runs `effect` alone on its conversation. A wait ends where it is interrupted. */
  readonly alone: (id: ConversationId) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>
}

export const makeLocks = (): Locks => {
  const held = new Map<ConversationId, { readonly semaphore: Effect.Semaphore; users: number }>()
  return {
    alone: (id) => (effect) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          const lock = held.get(id) ?? { semaphore: Effect.unsafeMakeSemaphore(1), users: 0 }
          lock.users++
          held.set(id, lock)
          return lock
        }),
        ({ semaphore }) => semaphore.withPermits(1)(effect),
        (lock) =>
          Effect.sync(() => {
            lock.users--
            if (lock.users === 0) held.delete(id)
          }),
      ),
  }
}
