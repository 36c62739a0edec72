/**
 * When a pool stops making people wait (the rule of Elixir's DBConnection, after CoDel). Waits are judged once per interval by the shortest of
 * them: one burst is no trouble, an interval in which *everybody* waited longer than the target is. While it lasts, whoever has waited longer
 * than twice the target is sent away, so that those who stay are served in time. Pure: times in milliseconds come from the caller.
 */

export interface QueueTimes {
  readonly targetMs: number
  readonly intervalMs: number
}

export class WaitJudge {
  readonly #times: QueueTimes
  /** The shortest wait of the present interval; null: nobody waited. */
  #shortest: number | null = null
  #next: number
  #slow = false

  constructor(times: QueueTimes, now: number) {
    this.#times = times
    this.#next = now + times.intervalMs
  }

  /** Somebody was served at `now` after waiting for so long; 0: at once. */
  served(now: number, waited: number): void {
    this.#turn(now)
    this.#shortest = Math.min(this.#shortest ?? waited, waited)
  }

  /** Nobody was served for an interval, and the first in the queue has waited for so long. */
  stuck(now: number, waited: number): void {
    if (this.#shortest === null) this.#shortest = waited
    this.#turn(now)
  }

  /** For how long anybody may have waited at `now`; null: for as long as they like. */
  limit(now: number): number | null {
    this.#turn(now)
    return this.#slow ? this.#times.targetMs * 2 : null
  }

  #turn(now: number): void {
    if (now < this.#next) return
    this.#slow = this.#shortest !== null && this.#shortest > this.#times.targetMs
    this.#shortest = null
    this.#next = now + this.#times.intervalMs
  }
}
