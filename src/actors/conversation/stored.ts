/**
 * A step of the machine in the store: what follows once it is there, and what a failure means. A caller is told and nothing changes; work that
 * nobody waits for is tried again until the store is back; a fenced actor crashes, since another node has taken over.
 */
import { Effect } from "effect"
import type { CommitError } from "../../storage/errors.ts"
import { storageFailure } from "./failures.ts"
import type { MachineEvent } from "./machine/data.ts"

/** First wait before a refused commit is tried again, doubled up to the second figure, in ms. */
const retryMs = [100, 2_000] as const

export interface Step<A> {
  /** What the step is taken for: its caller, where it has one, learns a failure. */
  readonly event: MachineEvent
  readonly goOn: () => Effect.Effect<A>
  readonly unchanged: () => A
  readonly warn: (message: string) => void
}

/** Does `effect`, and then goes on. */
export const stored = <A>(effect: Effect.Effect<unknown, CommitError>, step: Step<A>): Effect.Effect<A> => {
  const { event, goOn, unchanged, warn } = step
  const attempt = (waitMs: number): Effect.Effect<A> =>
    Effect.matchEffect(effect, {
      onSuccess: goOn,
      onFailure: (error) => {
        if (error._tag === "Fenced") return Effect.die(error)
        if ("reply" in event) {
          return Effect.map(storageFailure(error), (failure) => {
            event.reply.fail(failure)
            return unchanged()
          })
        }
        if (error._tag === "Conflict") return Effect.die(error)
        warn(`storage refused a commit (${error.message}); it is tried again`)
        return Effect.zipRight(Effect.sleep(waitMs), attempt(Math.min(waitMs * 2, retryMs[1])))
      },
    })
  return attempt(retryMs[0])
}
