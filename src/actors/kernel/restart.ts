/**
 * Restart policy, pure: which ends call for a restart, and the restart intensity (at most `maxRestarts` within `withinMs`, as a
 * sliding window like OTP's). Rules K30 to K33 of docs/kernel.md.
 */
import type { StopReason } from "./stop-reason.ts"

/**
 * `permanent`: always restarted. `transient`: restarted after a crash only. `temporary`: never restarted.
 */
export type RestartPolicy = "permanent" | "transient" | "temporary"

export interface Intensity {
  /** Restarts allowed within the window; one more is too many. Default 3. */
  readonly maxRestarts: number
  /** Length of the window in milliseconds. Default 5,000. */
  readonly withinMs: number
}

const defaultIntensity: Intensity = { maxRestarts: 3, withinMs: 5_000 }

/** Throws a RangeError where a number makes no sense. */
export const intensityOf = (options: Partial<Intensity>): Intensity => {
  const { maxRestarts = defaultIntensity.maxRestarts, withinMs = defaultIntensity.withinMs } = options
  if (!(maxRestarts >= 0)) throw new RangeError(`maxRestarts: expected a number of at least 0, got ${maxRestarts}`)
  if (!(withinMs > 0)) throw new RangeError(`withinMs: expected a positive number, got ${withinMs}`)
  return { maxRestarts, withinMs }
}

/** How a parent treats one child. */
export interface ChildSpec extends Intensity {
  readonly restart: RestartPolicy
  /**
   * How long a stop lets the running handler, and then `onStop`, take before each is interrupted. Default 5,000; 0 interrupts at
   * once and skips `onStop`; `Infinity` waits.
   */
  readonly shutdownMs: number
}

/** What `spawn` uses when told nothing: a crash ends the actor. */
const temporarySpec: ChildSpec = { restart: "temporary", shutdownMs: 5_000, ...defaultIntensity }

export const childSpec = (options: Partial<ChildSpec> | undefined): ChildSpec =>
  options === undefined ? temporarySpec : { ...temporarySpec, ...options, ...intensityOf(options) }

export const shouldRestart = (policy: RestartPolicy, reason: StopReason): boolean =>
  policy === "permanent" || (policy === "transient" && reason._tag === "Crashed")

/** The times of recent restarts. Mutable, one per supervisor (or per child of an ordinary actor). */
export class RestartWindow {
  private times: Array<number> = []
  private head = 0

  /** Counts a restart at `now` (milliseconds, never falling); false when that is one too many. */
  admit(now: number, intensity: Intensity): boolean {
    const { times } = this
    while (this.head < times.length && now - (times[this.head] ?? now) >= intensity.withinMs) this.head++
    if (times.length - this.head >= intensity.maxRestarts) return false
    if (this.head > 64 && this.head * 2 > times.length) {
      times.splice(0, this.head)
      this.head = 0
    }
    times.push(now)
    return true
  }
}
