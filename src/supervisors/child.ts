/**
 * Children of supervisors: their specs, and how a supervisor's handler starts and stops one.
 */
import { Effect } from "effect"
import type { Behavior } from "../actors/kernel/behavior.ts"
import type { Cell } from "../actors/kernel/cell.ts"
import { halt, launch } from "../actors/kernel/lifecycle.ts"
import type { RestartPolicy } from "../actors/kernel/restart.ts"
import { type StopReason, shutdown } from "../actors/kernel/stop-reason.ts"

export interface ChildOptions {
  /** Default `permanent`, as in OTP. */
  readonly restart?: RestartPolicy
  /** Milliseconds for the running handler and then `onStop`; default 5,000. A supervisor's children have their own. */
  readonly shutdownMs?: number
  /** A registry name that the child holds; unlike a ref it leads to the new child after its supervisor was restarted. */
  readonly register?: string
}

/** One child of a static supervisor. `R` are the services that its behavior needs. */
export interface SupervisedChild<out R> extends ChildOptions {
  /** Unique in its supervisor, and the child's name in the tree. */
  readonly id: string
  /** The supervisor does not look into messages and states. */
  readonly behavior: Behavior<never, never, R>
}

export const child = <S, M, R = never>(
  id: string,
  behavior: Behavior<S, M, R>,
  options: ChildOptions = {},
): SupervisedChild<R> => ({ id, behavior: behavior as unknown as Behavior<never, never, R>, ...options }) // types end here

/** Starts a cell that is new or DOWN. Gives null when it is up, or why it is not; done at once when `init` is. */
export const bringUp = (cell: Cell): Effect.Effect<StopReason | null> => {
  let outcome: StopReason | null | undefined
  let resume: ((effect: Effect.Effect<StopReason | null>) => void) | null = null
  const settle = (result: StopReason | null): void => {
    outcome = result
    resume?.(Effect.succeed(result))
  }
  launch(cell, { supervised: true, up: () => settle(null), failed: settle })
  if (outcome !== undefined) return Effect.succeed(outcome)
  return Effect.async((wake) => {
    resume = wake
    if (outcome !== undefined) wake(Effect.succeed(outcome))
  })
}

/** Ends a child's incarnation and waits for it: for good, or keeping its mail for the next one. */
export const takeDown = (cell: Cell, final: boolean): Effect.Effect<void> =>
  Effect.async((resume) => halt(cell, { final, reason: shutdown, quiet: true }, () => resume(Effect.void)))
