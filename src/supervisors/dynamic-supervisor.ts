/**
 * A supervisor whose children come and go at run time: each one on its own (one_for_one), all under one restart intensity. `spawn`
 * with `parent` set to its ref adds a child; `stop` takes one away. Starting a child does not wait for the others.
 */
import { Cause, Effect } from "effect"
import { type Behavior, nameShape } from "../actors/kernel/behavior.ts"
import { bury } from "../actors/kernel/burial.ts"
import type { Cell } from "../actors/kernel/cell.ts"
import { RestartIntensityExceeded, withoutStack } from "../actors/kernel/errors.ts"
import { crash, relaunch } from "../actors/kernel/lifecycle.ts"
import {
  type Intensity,
  intensityOf,
  type RestartPolicy,
  RestartWindow,
  shouldRestart,
} from "../actors/kernel/restart.ts"
import { DOWN } from "../actors/kernel/status.ts"
import type { StopReason } from "../actors/kernel/stop-reason.ts"

export interface DynamicSupervisorOptions extends Partial<Intensity> {
  readonly name?: string
  /** Default unbounded. */
  readonly maxChildren?: number
  /** For children whose `spawn` says nothing else; default `permanent`. */
  readonly restart?: RestartPolicy
  /** Milliseconds, likewise; default 5,000. */
  readonly shutdownMs?: number
}

/** Throws a RangeError where the options make no sense. Accepts no messages. */
export const dynamicSupervisor = (options: DynamicSupervisorOptions = {}): Behavior<RestartWindow, never> => {
  const { name = "supervisor", maxChildren = Number.POSITIVE_INFINITY, restart = "permanent", shutdownMs } = options
  const intensity = intensityOf(options)
  if (!nameShape.test(name)) throw new RangeError(`name: expected a name without "/", got ${JSON.stringify(name)}`)
  return {
    kind: "supervisor",
    name,
    init: () => new RestartWindow(),
    receive: (window) => Effect.succeed(window),
    describe: () => "dynamic",
    hooks: {
      childEnded: (parent, child, reason) => childEnded(parent, child, reason, intensity),
      refuse: (parent) => (countChildren(parent, maxChildren) >= maxChildren ? "too_many_children" : null),
      childDefaults: { restart, ...(shutdownMs === undefined ? {} : { shutdownMs }) },
    },
  }
}

const childEnded = (parent: Cell, child: Cell, reason: StopReason, intensity: Intensity): void => {
  if (child.status !== DOWN) return
  if (!shouldRestart(child.spec.restart, reason)) {
    bury(child, reason)
    return
  }
  // The behavior above made its state; before `init` is done there are no children.
  const window = parent.state as RestartWindow
  if (window.admit(child.kernel.timers.now(), intensity)) {
    relaunch(child)
    return
  }
  const neverUp = !child.extras.wasUp
  bury(child, reason)
  if (neverUp) return // its spawner learns it
  const cause = reason._tag === "Crashed" ? reason.cause : null
  crash(
    parent,
    Cause.fail(withoutStack(() => new RestartIntensityExceeded({ child: child.path, ...intensity, cause }))),
  )
}

/** Counts no further than `enough`. */
const countChildren = (parent: Cell, enough: number): number => {
  if (enough === Number.POSITIVE_INFINITY) return 0
  let count = 0
  for (let child = parent.child; child !== null && count < enough; child = child.older) count++
  return count
}
