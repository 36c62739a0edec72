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

/** Node fires a longer timer at once, and Effect's own live clock never: what is longer is slept in pieces. */
const MAX_TIMER_MS = 0x7fffffff

export const liveTimers: Timers = {
  live: true,
  now: () => performance.now(),
  wall: () => Date.now(),
  after: (ms, action) => {
    if (!(ms > MAX_TIMER_MS)) {
      const timer = setTimeout(action, ms)
      return () => clearTimeout(timer)
    }
    if (ms === Number.POSITIVE_INFINITY) return () => {}
    const due = performance.now() + ms
    let timer: ReturnType<typeof setTimeout>
    const piece = () => {
      const left = due - performance.now()
      timer = left > MAX_TIMER_MS ? setTimeout(piece, MAX_TIMER_MS) : setTimeout(action, left)
    }
    piece()
    return () => clearTimeout(timer)
  },
}

/** `run` forks an Effect and gives its interruption. */
export const clockTimers = (clock: Clock.Clock, run: (effect: Effect.Effect<void>) => () => void): Timers => ({
  live: false,
  now: () => clock.unsafeCurrentTimeMillis(),
  wall: () => clock.unsafeCurrentTimeMillis(),
  after: (ms, action) =>
    Number.isFinite(ms) ? run(Effect.zipRight(sleepOn(clock, ms), Effect.sync(action))) : () => {},
})

/**
 * Sleeps on `clock` until `ms` after this call, however long that is: Effect's clock never wakes whoever sleeps longer than 24.8 days at
 * once. What the clock moves until the sleep begins counts.
 */
const sleepOn = (clock: Clock.Clock, ms: number): Effect.Effect<void> => {
  const due = clock.unsafeCurrentTimeMillis() + ms
  const piece: Effect.Effect<void> = Effect.suspend(() => {
    const left = Math.max(0, due - clock.unsafeCurrentTimeMillis())
    return left > MAX_TIMER_MS
      ? Effect.zipRight(clock.sleep(Duration.millis(MAX_TIMER_MS)), piece)
      : clock.sleep(Duration.millis(left))
  })
  return piece
}

/** {@link sleepOn} the current clock: `Effect.sleep` for any length. Not finite means for ever. */
export const sleepLong = (ms: number): Effect.Effect<void> =>
  Number.isFinite(ms) ? Effect.clockWith((clock) => sleepOn(clock, ms)) : Effect.never
