/**
 * What only some actors have: a name, watchers, held-back senders, a scope, a past. Made on first use, so that a plain idle actor
 * stays small.
 */
import { type Cause, Effect, type Fiber, type Scope } from "effect"
import { Ask } from "./ask.ts"
import type { Cell } from "./cell.ts"
import type { Ending, Starting } from "./lifecycle.ts"
import { EMPTY } from "./mailbox.ts"
import type { RestartWindow } from "./restart.ts"
import type { StopReason } from "./stop-reason.ts"

/** Told once when an actor has ended for good. */
export interface Watcher {
  notify(watched: Cell, reason: StopReason): void
}

/** A sender held back by a full mailbox; its message counts as not sent until it is admitted. */
export interface Blocked {
  readonly item: unknown
  readonly resume: ((outcome: Effect.Effect<void>) => void) | null
  cancelled: boolean
}

export class Extras {
  name: string | null = null
  /** Explicit names of children, to keep them unique. */
  childNames: Set<string> | null = null
  /** Names held in the registry. */
  registered: Set<string> | null = null
  watchers: Set<Watcher> | null = null
  watching: Set<Cell> | null = null
  scope: Scope.CloseableScope | null = null
  restarts = 0
  /** An incarnation before this one was up. */
  wasUp = false
  lastCrash: { readonly cause: Cause.Cause<unknown>; readonly at: number } | null = null
  window: RestartWindow | null = null
  /** Who waits for `init`. */
  starting: Starting | null = null
  /** The stop in progress. */
  ending: Ending | null = null
  /** Runs an `init` that takes its time. */
  init: Fiber.RuntimeFiber<unknown, unknown> | null = null
  blocked: Array<Blocked> | null = null

  addWatcher(watcher: Watcher): void {
    this.watchers ??= new Set()
    this.watchers.add(watcher)
  }

  /** Suspends the sender until there is room. */
  wait(item: unknown): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      const entry: Blocked = { item, resume, cancelled: false }
      this.hold(entry)
      return Effect.sync(() => {
        entry.cancelled = true
      })
    })
  }

  hold(entry: Blocked): void {
    if (this.blocked === null) this.blocked = [entry]
    else this.blocked.push(entry)
  }

  /** The message of the longest waiting sender that still wants to send, or EMPTY. */
  admit(): unknown {
    for (;;) {
      const entry = this.blocked?.shift()
      if (this.blocked?.length === 0) this.blocked = null
      if (entry === undefined) return EMPTY
      if (entry.cancelled || (entry.item instanceof Ask && !entry.item.wanted)) continue
      entry.resume?.(Effect.void)
      return entry.item
    }
  }
}
