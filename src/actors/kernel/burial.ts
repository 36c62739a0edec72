/**
 * The final end of an actor: mail becomes dead letters, askers and watchers learn it, names are free. Rules K25 to K29 of
 * docs/kernel.md.
 */
import { type Cause, Effect } from "effect"
import { Ask } from "./ask.ts"
import type { Cell } from "./cell.ts"
import { Envelope, Letter } from "./envelope.ts"
import { DEAD } from "./status.ts"
import type { StopReason } from "./stop-reason.ts"

/** DEAD: mail becomes dead letters, askers and watchers learn it, names are free. */
export const bury = (cell: Cell, reason: StopReason): void => {
  if (cell.status === DEAD) return
  const { kernel, parent } = cell
  cell.status = DEAD
  kernel.actors--
  const name = cell.name
  cell.state = reason
  for (const item of cell.takeAll()) if (item instanceof Letter || !(item instanceof Envelope)) kernel.deadLetters++
  failAsks(cell, reason, false)
  if (cell.older !== null) cell.older.newer = cell.newer
  if (cell.newer !== null) cell.newer.older = cell.older
  else if (parent !== null && parent.child === cell) parent.child = cell.older
  cell.older = cell.newer = null
  const extras = cell.hasExtras
  if (extras === null) return
  parent?.hasExtras?.childNames?.delete(name)
  for (const registered of extras.registered ?? []) kernel.registry.release(registered, cell)
  for (const other of extras.watching ?? []) other.hasExtras?.watchers?.delete(cell)
  for (const entry of extras.blocked ?? []) {
    if (entry.cancelled || entry.item instanceof Ask) continue
    kernel.deadLetters++
    entry.resume?.(Effect.void)
  }
  extras.blocked = extras.watching = null
  const { starting, watchers } = extras
  extras.starting = extras.watchers = null
  cell.forgetExtras()
  starting?.failed(reason)
  for (const watcher of watchers ?? []) watcher.notify(cell, reason)
}

/** Fails the open asks of a cell: all, or those that a handler has been given. */
export const failAsks = (cell: Cell, reason: StopReason, takenOnly: boolean): void => {
  for (let ask = cell.asks; ask !== null; ) {
    const next: Ask | null = ask.after
    if (ask.taken || !takenOnly) ask.down(reason)
    ask = next
  }
}

/** For the live tree and the log. */
export const recordCrash = (cell: Cell, cause: Cause.Cause<unknown>): void => {
  cell.extras.lastCrash = { cause, at: cell.kernel.timers.wall() }
  cell.kernel.reportCrash(cell, cause)
}
