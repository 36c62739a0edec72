/**
 * The kernel's typed errors. `ActorDown` and `AskTimeout` are made on hot paths and carry no stack: the caller's own trace is
 * in the span, and capturing one costs more than the whole ask.
 */
import { type Cause, Data } from "effect"
import { describeCause, describeReason, type StopReason } from "./stop-reason.ts"

/** The actor was dead, or died before it answered. */
export class ActorDown extends Data.TaggedError("ActorDown")<{ readonly path: string; readonly reason: StopReason }> {
  override get message() {
    return `actor ${this.path}: expected an answer, but it is down (${describeReason(this.reason)})`
  }
}

/** The actor is alive as far as known, but gave no answer within `timeoutMs`. */
export class AskTimeout extends Data.TaggedError("AskTimeout")<{ readonly path: string; readonly timeoutMs: number }> {
  override get message() {
    return `actor ${this.path}: expected an answer within ${this.timeoutMs} ms, got none`
  }
}

/**
 * An actor could not be started: its name is taken among its siblings, its parent is stopping, it was stopped before it was up, or
 * its `init` failed (as often as its child spec allows).
 */
export class SpawnError extends Data.TaggedError("SpawnError")<{
  readonly path: string
  readonly problem: "name_taken" | "parent_down" | "stopped" | "init_failed" | "too_many_children" | "fixed_children"
  readonly cause: Cause.Cause<unknown> | null
}> {
  override get message() {
    const why =
      this.problem === "init_failed" && this.cause !== null
        ? `init failed: ${describeCause(this.cause)}`
        : problems[this.problem]
    return `actor ${this.path}: expected it to start, but ${why}`
  }
}

const problems = {
  name_taken: "a sibling has that name",
  parent_down: "its parent is stopping or gone",
  stopped: "it was stopped before it was up",
  init_failed: "init failed",
  too_many_children: "its supervisor has as many children as it may have",
  fixed_children: "its supervisor has a fixed list of children",
}

/** A unique name is held by another live actor. */
export class NameTaken extends Data.TaggedError("NameTaken")<{ readonly name: string; readonly holder: string }> {
  override get message() {
    return `registry name ${JSON.stringify(this.name)}: expected a free name, held by ${this.holder}`
  }
}

/** More restarts than the restart intensity allows; the reason with which a supervisor crashes when it escalates. */
export class RestartIntensityExceeded extends Data.TaggedError("RestartIntensityExceeded")<{
  readonly child: string
  readonly maxRestarts: number
  readonly withinMs: number
  readonly cause: Cause.Cause<unknown> | null
}> {
  override get message() {
    const last = this.cause === null ? "" : `; last crash: ${describeCause(this.cause)}`
    return `${this.child}: expected at most ${this.maxRestarts} restarts within ${this.withinMs} ms${last}`
  }
}

/** A state machine postponed more messages than its mailbox capacity. */
export class PostponeOverflow extends Data.TaggedError("PostponeOverflow")<{
  readonly path: string
  readonly state: string
  readonly capacity: number
}> {
  override get message() {
    return `machine ${this.path}: expected at most ${this.capacity} postponed messages in state ${this.state}`
  }
}

/** Makes an error without capturing a stack. */
export const withoutStack = <E>(make: () => E): E => {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 0
  try {
    return make()
  } finally {
    Error.stackTraceLimit = limit
  }
}
