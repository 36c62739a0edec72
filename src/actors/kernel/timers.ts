/**
 * Time for the kernel: ask deadlines, state timeouts, shutdown deadlines and the intensity window all read the Clock that was
 * current when the system was built. With Effect's live clock they cost a plain timer; with any other (a TestClock) they sleep on it.
 */
import { type Clock, Duration, Effect } from "effect"

export interface Timers {
  /** Milliseconds of a clock that never goes back, for windows and deadlines. */
  readonly now: () => number
  /** Milliseconds since the epoch. */
  readonly wall: () => number
  /** Runs `action` once after `ms`; the result cancels it. */
  readonly after: (ms: number, action: () => void) => () => void
  /** Whether deadlines may be swept by one coarse timer. */
  readonly live: boolean
}

/** Node fires a longer timer at once. */
const MAX_TIMER_MS = 0x7fffffff

export const liveTimers: Timers = {
  live: true,
  now: () => performance.now(),
  wall: () => Date.now(),
  after: (ms, action) => {
    if (ms > MAX_TIMER_MS) return () => {} // 24.8 days: beyond every process
    const timer = setTimeout(action, ms)
    return () => clearTimeout(timer)
  },
}

/** `run` forks an Effect and gives its interruption. */
export const clockTimers = (clock: Clock.Clock, run: (effect: Effect.Effect<void>) => () => void): Timers => ({
  live: false,
  now: () => clock.unsafeCurrentTimeMillis(),
  wall: () => clock.unsafeCurrentTimeMillis(),
  after: (ms, action) =>
    Number.isFinite(ms) ? run(Effect.zipRight(clock.sleep(Duration.millis(ms)), Effect.sync(action))) : () => {},
})
