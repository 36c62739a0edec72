/**
 * A store whose commits are counted and timed, for metrics.
 */
import { type Clock, Effect, Exit } from "effect"
import type { Observer } from "../observability/observer.ts"
import type { CommitError } from "../storage/errors.ts"
import type { StoreService } from "../storage/store.ts"

const statuses = {
  Conflict: "conflict",
  Fenced: "fenced",
  CorruptRow: "unavailable",
  StorageUnavailable: "unavailable",
} as const

const statusOf = (exit: Exit.Exit<unknown, CommitError>) => {
  if (Exit.isSuccess(exit)) return "ok"
  return exit.cause._tag === "Fail" ? statuses[exit.cause.error._tag] : "unavailable"
}

export const countedStore = (store: StoreService, observer: Observer, clock: Clock.Clock): StoreService => ({
  ...store,
  commit: (commit) =>
    Effect.suspend(() => {
      const startedAt = clock.unsafeCurrentTimeNanos()
      return Effect.onExit(store.commit(commit), (exit) =>
        Effect.sync(() => {
          observer.committed(statusOf(exit), Number(clock.unsafeCurrentTimeNanos() - startedAt) / 1e6)
        }),
      )
    }),
})
