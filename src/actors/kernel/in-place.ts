/**
 * Runs the first steps of a handler where the worker calls it, without the fiber's own loop: a handler that reads services and
 * fiber-local values and computes is done here, any other goes on in the fiber from the first step that needs it. It does
 * what Effect's loop does for the instructions that it knows, and leaves to the fiber
 *
 *   - every other instruction: waiting, catching, changing flags, yielding and so on;
 *   - what comes after a change of fiber-local values (tracer, scheduler and span may be others) or a signal to the fiber;
 *   - what comes after MAX_STEPS, so that a long handler yields as any fiber does.
 *
 * What follows a step is kept in frames as on the fiber's own stack, and goes there when the fiber takes over. test/kernel/in-place.test.ts
 * fails when Effect changes one of these instructions. Rules K3 to K5 and K9 of docs/kernel.md.
 */
import { Cause, Context, Effect, Exit, FiberId, FiberStatus, type RuntimeFlags, Utils } from "effect"
import { type AnyFiber, fiberRefsOf, hasSignals, pushFrame } from "./effect-internals.ts"

/** Of one handler; with the worker's budget of messages it keeps a worker from holding up others for long. */
const MAX_STEPS = 256

type Handling = Effect.Effect<unknown, unknown>

type Known =
  | { readonly _op: "Success"; readonly value: unknown }
  | { readonly _op: "Failure" }
  | { readonly _op: "Commit"; commit(): Handling }
  | { readonly _op: "Sync"; readonly effect_instruction_i0: () => unknown }
  | {
      readonly _op: "WithRuntime"
      readonly effect_instruction_i0: (fiber: AnyFiber, status: FiberStatus.FiberStatus) => Handling
    }
  | ({ readonly _op: "Tag" } & Context.Tag<never, unknown>)
  | OnSuccess
  | Iterating

interface OnSuccess {
  readonly _op: "OnSuccess"
  readonly effect_instruction_i0: Handling
  readonly effect_instruction_i1: (value: unknown) => Handling
}

/** A generator in progress. */
interface Iterating {
  readonly _op: "Iterator"
  readonly effect_instruction_i0: Iterator<Utils.YieldWrap<Handling>, unknown, unknown>
}

// The public types say nothing of instructions; those that are not listed end in the default case.
const known = (effect: Handling): Known => effect as unknown as Known

export class InPlace {
  private readonly fiber: AnyFiber
  private readonly status: FiberStatus.FiberStatus
  /** What follows the current step, the next one last. */
  private readonly frames: Array<OnSuccess | Iterating> = []
  private current: Handling = Effect.void

  constructor(fiber: AnyFiber, flags: RuntimeFlags.RuntimeFlags) {
    this.fiber = fiber
    this.status = FiberStatus.running(flags)
  }

  /** Called in the fiber: gives the handler's exit, or null where the fiber has to go on, with `handOver`. */
  run(handler: Handling): Handling | null {
    this.current = handler
    try {
      this.fiber.currentTracer.context(this.steps, this.fiber)
    } catch (thrown) {
      this.frames.length = 0
      this.current = Effect.failCause(causeOf(thrown))
    }
    const { _op } = known(this.current)
    if (_op === "Failure") this.frames.length = 0 // none of them catches
    const done = _op === "Failure" || (_op === "Success" && this.frames.length === 0)
    return done && !hasSignals(this.fiber) ? this.current : null
  }

  /** The step with which the fiber goes on, in place of the handler. */
  handOver(): Handling {
    for (const frame of this.frames) pushFrame(this.fiber, frame)
    this.frames.length = 0
    return this.current
  }

  private readonly steps = (): void => {
    const { fiber, frames } = this
    const refs = fiberRefsOf(fiber)
    for (let left = MAX_STEPS; left > 0; left--) {
      const step = known(this.current)
      switch (step._op) {
        case "Success": {
          const frame = frames.pop()
          if (frame === undefined) return
          this.current =
            frame._op === "OnSuccess" ? frame.effect_instruction_i1(step.value) : this.iterate(frame, step.value)
          break
        }
        case "Commit":
          this.current = step.commit()
          break
        case "Sync":
          this.current = Exit.succeed(step.effect_instruction_i0())
          break
        case "WithRuntime":
          this.current = step.effect_instruction_i0(fiber, this.status)
          break
        case "Tag":
          this.current = Exit.succeed(Context.unsafeGet(fiber.currentContext, step))
          break
        case "OnSuccess":
          frames.push(step)
          this.current = step.effect_instruction_i0
          break
        case "Iterator":
          this.current = this.iterate(step, undefined)
          break
        default:
          return
      }
      if (fiberRefsOf(fiber) !== refs || hasSignals(fiber)) return
    }
  }

  private iterate(frame: Iterating, value: unknown): Handling {
    const next = frame.effect_instruction_i0.next(value)
    if (next.done) return Exit.succeed(next.value)
    this.frames.push(frame)
    return Utils.yieldWrapGet(next.value)
  }
}

/** As Effect takes what is thrown. */
const causeOf = (thrown: unknown): Cause.Cause<never> =>
  Cause.isInterruptedException(thrown)
    ? Cause.sequential(Cause.die(thrown), Cause.interrupt(FiberId.none))
    : Cause.die(thrown)
