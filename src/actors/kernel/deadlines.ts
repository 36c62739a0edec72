/**
 * The deadlines of open asks. Asks with the same time limit expire in the order in which they were made, so each time limit has one
 * list, and one timer sweeps the heads of all lists. Short limits, and clocks that are not the live one, get a timer of their own.
 */
import type { Ask } from "./ask.ts"
import type { Timers } from "./timers.ts"

/** How late a swept deadline may come. */
const SWEEP_MS = 50
/** Limits below this are kept to the millisecond. */
const PRECISE_BELOW_MS = 1_000

export class DeadlineList {
  first: Ask | null = null
  private last: Ask | null = null
  readonly timeoutMs: number

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs
  }

  add(ask: Ask): void {
    ask.list = this
    ask.earlier = this.last
    if (this.last === null) this.first = ask
    else this.last.later = ask
    this.last = ask
  }

  remove(ask: Ask): void {
    ask.list = null
    if (ask.earlier === null) this.first = ask.later
    else ask.earlier.later = ask.later
    if (ask.later === null) this.last = ask.earlier
    else ask.later.earlier = ask.earlier
    ask.earlier = ask.later = null
  }
}

export class Deadlines {
  private readonly timers: Timers
  private readonly lists = new Map<number, DeadlineList>()
  private recent: DeadlineList | null = null
  private sweeper: ReturnType<typeof setTimeout> | null = null

  constructor(timers: Timers) {
    this.timers = timers
  }

  add(ask: Ask): void {
    const { timeoutMs } = ask
    if (timeoutMs === Number.POSITIVE_INFINITY) return
    if (!this.timers.live || timeoutMs < PRECISE_BELOW_MS) {
      ask.cancelTimer = this.timers.after(timeoutMs, () => {
        ask.cancelTimer = null
        ask.timedOut()
      })
      return
    }
    ask.deadline = performance.now() + timeoutMs
    let list = this.recent
    if (list === null || list.timeoutMs !== timeoutMs) list = this.recent = this.listOf(timeoutMs)
    list.add(ask)
    if (this.sweeper === null) this.sweeper = setTimeout(this.sweep, SWEEP_MS)
  }

  /** Ends the timer; open asks have been failed by then. */
  close(): void {
    if (this.sweeper !== null) clearTimeout(this.sweeper)
    this.sweeper = null
  }

  private listOf(timeoutMs: number): DeadlineList {
    const known = this.lists.get(timeoutMs)
    if (known !== undefined) return known
    const list = new DeadlineList(timeoutMs)
    this.lists.set(timeoutMs, list)
    return list
  }

  private readonly sweep = (): void => {
    this.sweeper = null
    const now = performance.now()
    let pending = false
    for (const list of this.lists.values()) {
      while (list.first !== null && list.first.deadline <= now) list.first.timedOut()
      if (list.first !== null) pending = true
      else if (list !== this.recent) this.lists.delete(list.timeoutMs)
    }
    if (pending) this.sweeper = setTimeout(this.sweep, SWEEP_MS)
  }
}
