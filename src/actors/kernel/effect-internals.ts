/**
 * Every place where the kernel looks behind Effect's public API, for Effect 3.22, but for the instructions that in-place.ts runs.
 * test/kernel/effect-internals.test.ts fails when one of these changes.
 *
 * Why they are used: the public `getFiberRefs` copies the whole map at each call, the public child set is an Effect, and asking
 * `Exit.isExit` of every handler result costs more than handling a message.
 */
import {
  Cause,
  Effect,
  type Fiber,
  FiberId,
  FiberRef,
  FiberRefs,
  GlobalValue,
  Option,
  RuntimeFlags,
  type Tracer,
} from "effect"

interface FiberInternals {
  readonly _fiberRefs: FiberRefs.FiberRefs
  readonly _children: Set<unknown> | null
  readonly currentRuntimeFlags: RuntimeFlags.RuntimeFlags
  readonly currentOpCount: number
  readonly currentSpan: Tracer.AnySpan | undefined
  readonly _queue: ReadonlyArray<unknown>
  pushStack(frame: unknown): void
  setFiberRefs(refs: FiberRefs.FiberRefs): void
}

export type AnyFiber = Fiber.RuntimeFiber<unknown, unknown>

// The fields are private in Effect's class, hence the detour over unknown.
const internals = (fiber: AnyFiber) => fiber as unknown as FiberInternals

/** The fiber's current fiber-local values, not copied. */
export const fiberRefsOf = (fiber: AnyFiber): FiberRefs.FiberRefs => internals(fiber)._fiberRefs

/** Must be called by the fiber itself. */
export const setFiberRefs = (fiber: AnyFiber, refs: FiberRefs.FiberRefs): void => internals(fiber).setFiberRefs(refs)

/** Whether `Effect.fork` left children that have not ended. */
export const hasChildren = (fiber: AnyFiber): boolean => {
  const children = internals(fiber)._children
  return children !== null && children.size > 0
}

export const runtimeFlagsOf = (fiber: AnyFiber): RuntimeFlags.RuntimeFlags => internals(fiber).currentRuntimeFlags

/** Whether an interruption would end what the fiber does now. */
export const isInterruptible = (fiber: AnyFiber): boolean => RuntimeFlags.interruptible(runtimeFlagsOf(fiber))

/** Whether somebody has interrupted the fiber; stays so after its end. */
export const wasInterrupted = (fiber: AnyFiber): boolean => !Cause.isEmpty(fiber.getFiberRef(FiberRef.interruptedCause))

/** Operations since the fiber last yielded. */
export const opCountOf = (fiber: AnyFiber): number => internals(fiber).currentOpCount

export const spanOf = (fiber: AnyFiber): Tracer.AnySpan | undefined => internals(fiber).currentSpan

/** Where `Fiber.getCurrentFiber` looks. */
const current = "effect/FiberCurrent"

/** The fiber that runs the calling code, without the Option. Throws outside of one. */
export const currentFiber = (): AnyFiber => {
  // A global that the fiber sets while it runs.
  const fiber = (globalThis as unknown as { readonly [current]: AnyFiber | null | undefined })[current]
  if (fiber === undefined || fiber === null) throw new Error("currentFiber: expected to be called by a fiber")
  return fiber
}

/** Whether the fiber has been told something (an interruption, mostly) that it looks at before its next operation. */
export const hasSignals = (fiber: AnyFiber): boolean => internals(fiber)._queue.length > 0

/** Puts an instruction on the fiber's stack: it goes on with the value of the fiber's next one. Must be called by the fiber itself. */
export const pushFrame = (fiber: AnyFiber, frame: unknown): void => internals(fiber).pushStack(frame)

interface InstructionParts {
  readonly _op: string
  readonly value: unknown
  readonly cause: Cause.Cause<unknown>
}

/** An Exit is an Effect whose instruction tag is its own; other Effects have other tags. */
export const instruction = (effect: Effect.Effect<unknown, unknown, unknown>): InstructionParts =>
  // The public types say nothing of instructions.
  effect as unknown as InstructionParts

export const isExit = (effect: Effect.Effect<unknown, unknown, unknown>): boolean => {
  const { _op } = instruction(effect)
  return _op === "Success" || _op === "Failure"
}

interface Waiting {
  effect_instruction_i0: unknown
  effect_instruction_i1: unknown
}

const commit = (effect: Effect.Effect<never>) =>
  // What the fiber calls to get at the instruction of an `async`.
  (effect as unknown as { commit(): { readonly constructor: new (op: string) => Waiting } }).commit()

/** The class of Effect's instructions. */
const { constructor: Instruction } = commit(Effect.async<never>((_resume) => {}))

/** `async` for a `register` without a cleanup: one instruction, no buffers around its callback. */
export const wait = <A, E>(register: (resume: (outcome: Effect.Effect<A, E>) => void) => void): Effect.Effect<A, E> => {
  const waiting = new Instruction("Async")
  waiting.effect_instruction_i0 = register
  waiting.effect_instruction_i1 = FiberId.none
  // An object of Effect's own class.
  return waiting as unknown as Effect.Effect<A, E>
}

/** `flatMap`, at once where the first step is done already. */
export const chain = <A, B, E1, E2, R1, R2>(
  first: Effect.Effect<A, E1, R1>,
  second: (a: A) => Effect.Effect<B, E2, R2>,
): Effect.Effect<B, E1 | E2, R1 | R2> => {
  const done = instruction(first)
  return done._op === "Success" ? second(done.value as A) : Effect.flatMap(first, second)
}

/** The same values, compared ref by ref: lets actors spawned from one fiber share one set. */
export const sameFiberRefs = (a: FiberRefs.FiberRefs, b: FiberRefs.FiberRefs): boolean => {
  if (a.locals.size !== b.locals.size) return false
  for (const [ref, stack] of a.locals) {
    if (ref === FiberRef.currentRuntimeFlags) continue
    const other = b.locals.get(ref)
    if (other === undefined || other[0][1] !== stack[0][1]) return false
  }
  return true
}

export const fiberRefValue = <A>(refs: FiberRefs.FiberRefs, ref: FiberRef.FiberRef<A>): A =>
  FiberRefs.getOrDefault(refs, ref)

/** Where `Effect.fork` attaches children instead of to the forking fiber; some concurrent operators set it for their bodies. */
export const forkScopeOverride: FiberRef.FiberRef<Option.Option<unknown>> = GlobalValue.globalValue(
  Symbol.for("effect/FiberRef/currentForkScopeOverride"),
  () => FiberRef.unsafeMake(Option.none()),
)
