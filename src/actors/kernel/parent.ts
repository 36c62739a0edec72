/**
 * What becomes of a child whose incarnation has ended: a supervisor decides by its strategy, any other parent by the child's spec.
 * Rules K30 to K34 of docs/kernel.md.
 */
import { Cause } from "effect"
import { bury } from "./burial.ts"
import type { Cell } from "./cell.ts"
import { crash } from "./end.ts"
import { RestartIntensityExceeded, withoutStack } from "./errors.ts"
import { RestartWindow, shouldRestart } from "./restart.ts"
import { launch } from "./start.ts"
import { DOWN, STOPPING, UNBORN } from "./status.ts"
import type { StopReason } from "./stop-reason.ts"

export const parentDecides = (child: Cell, reason: StopReason): void => {
  const { parent } = child
  if (parent === null || parent.status >= STOPPING) return // it stops its children anyway
  const childEnded = parent.behavior.hooks?.childEnded
  if (childEnded !== undefined) childEnded(parent, child, reason)
  else if (child.status === DOWN) restartOrBury(parent, child, reason)
}

/** What an ordinary actor does about a child: its spec alone decides; too many restarts crash the parent (K33). */
const restartOrBury = (parent: Cell, child: Cell, reason: StopReason): void => {
  const { kernel, spec } = child
  if (!shouldRestart(spec.restart, reason)) {
    bury(child, reason)
    return
  }
  const { extras } = child
  extras.window ??= new RestartWindow()
  if (extras.window.admit(kernel.timers.now(), spec)) {
    relaunch(child)
    return
  }
  const neverUp = !extras.wasUp
  const cause = reason._tag === "Crashed" ? reason.cause : null
  bury(child, reason)
  if (neverUp || parent.parent === null) return // the spawner learns it; the guardian outlives its children
  crash(
    parent,
    Cause.fail(withoutStack(() => new RestartIntensityExceeded({ child: child.path, ...limitsOf(child), cause }))),
  )
}

const limitsOf = ({ spec }: Cell) => ({ maxRestarts: spec.maxRestarts, withinMs: spec.withinMs })

/** Counts a restart and starts the next incarnation; in its own turn when `init` itself failed, so that a loop yields. */
export const relaunch = (child: Cell): void => {
  const { extras } = child
  extras.restarts++
  if (child.state !== UNBORN) {
    launch(child, null)
    return
  }
  child.kernel.post(() => {
    if (child.status === DOWN) launch(child, null)
  })
}
