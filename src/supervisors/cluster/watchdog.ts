/**
 * Notices that this process was stopped for so long (a debugger, a suspended machine, a starved host) that its locks may have gone to
 * others: a timer that is late asks the database at once. What was lost meanwhile is fenced there in any case; the watchdog makes sure
 * that the process does not go on as if nothing had happened.
 */
import { Effect, type Scope } from "effect"

/** Between two beats, in ms. */
const beatMs = 250
/** A beat that is later than this asks, in ms. */
const lateMs = 2_000

export interface WatchdogParts {
  /** Whether this node still is what it believes to be; false ends it. Only asked after a pause. */
  readonly stillHere: Effect.Effect<boolean>
  /** Told how long the pause was, in ms, when the node is not what it was. */
  readonly onLost: (pausedMs: number) => Effect.Effect<void>
}

/** Watches until the scope closes. */
export const watchdog = ({ onLost, stillHere }: WatchdogParts): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const runtime = yield* Effect.runtime<never>()
    const run = (effect: Effect.Effect<void>): void => void Effect.runFork(Effect.provide(effect, runtime))
    let last = performance.now()
    let asking = false
    yield* Effect.acquireRelease(
      Effect.sync(() =>
        setInterval(() => {
          const now = performance.now()
          const paused = now - last - beatMs
          last = now
          if (paused < lateMs || asking) return
          asking = true
          run(
            Effect.flatMap(stillHere, (here) => (here ? Effect.void : onLost(Math.round(paused)))).pipe(
              Effect.ensuring(
                Effect.sync(() => {
                  asking = false
                  last = performance.now()
                }),
              ),
            ),
          )
        }, beatMs).unref(),
      ),
      (timer) => Effect.sync(() => clearInterval(timer)),
    )
  })
