/**
 * The engine of one actor system: the run queue, the guardian, ids, counters, time and the fiber-local values that actors start with.
 * Public access goes through the ActorSystem service (system.ts) and the operations (operations.ts).
 */
import {
  type Cause,
  Context,
  Effect,
  FiberId,
  FiberRef,
  FiberRefs,
  HashSet,
  Logger,
  LogLevel,
  Option,
  Runtime,
  RuntimeFlags,
  Tracer,
} from "effect"
import type { TreeNode } from "../../domain/tree.ts"
import { type Behavior, nameShape, type SpawnOptions } from "./behavior.ts"
import { Cell, type CellBehavior } from "./cell.ts"
import { Deadlines } from "./deadlines.ts"
import { type AnyFiber, fiberRefsOf, fiberRefValue, forkScopeOverride, sameFiberRefs } from "./effect-internals.ts"
import { SpawnError, withoutStack } from "./errors.ts"
import { halt, launch } from "./lifecycle.ts"
import type { ActorRef } from "./ref.ts"
import { NameRegistry } from "./registry.ts"
import { type ChildSpec, childSpec } from "./restart.ts"
import { RunQueue } from "./run-queue.ts"
import { DEAD, STARTING, STOPPING } from "./status.ts"
import { describeCause, type StopReason } from "./stop-reason.ts"
import type { ActorSystemService } from "./system-service.ts"
import type { Timers } from "./timers.ts"
import { snapshot } from "./tree.ts"
import type { Worker } from "./worker.ts"

export class Kernel implements ActorSystemService {
  readonly name: string
  readonly timers: Timers
  readonly deadlines: Deadlines
  readonly registry = new NameRegistry()
  readonly guardian: Cell
  /** The fiber-local values of the kernel's own fibers: those of the fiber that built the system. */
  readonly env: FiberRefs.FiberRefs
  deadLetters = 0
  actors = 0
  private ids = 0
  readonly scheduler: RunQueue
  private readonly runtimeFlags: RuntimeFlags.RuntimeFlags
  /** Derived fiber-local values, by what they were derived from; the latest pair beside it. */
  private readonly envs = new WeakMap<FiberRefs.FiberRefs, FiberRefs.FiberRefs>()
  private lastRefs: FiberRefs.FiberRefs
  private lastEnv: FiberRefs.FiberRefs

  constructor(name: string, refs: FiberRefs.FiberRefs, timers: (kernel: Kernel) => Timers) {
    this.name = name
    this.scheduler = new RunQueue(this)
    this.runtimeFlags = RuntimeFlags.disable(Runtime.defaultRuntime.runtimeFlags, RuntimeFlags.RuntimeMetrics)
    this.env = this.derive(refs)
    this.lastRefs = refs
    this.lastEnv = this.env
    this.envs.set(this.env, this.env)
    this.timers = timers(this)
    this.deadlines = new Deadlines(this.timers)
    this.guardian = new Cell(
      this,
      null,
      guardianBehavior,
      childSpec({ shutdownMs: Number.POSITIVE_INFINITY }),
      this.env,
    )
    this.guardian.extras.name = "user"
    this.actors = 0
    launch(this.guardian, null)
  }

  nextId(): number {
    this.actors++
    return this.ids++
  }

  // ---- the run queue, for cells and workers -----------------------------------------------------------------------------------

  sliceOver(): boolean {
    return this.scheduler.sliceOver()
  }

  post(task: Cell | (() => void)): void {
    this.scheduler.post(task)
  }

  take(worker: Worker): Cell | null {
    return this.scheduler.take(worker)
  }

  mayPark(): boolean {
    return this.scheduler.mayPark()
  }

  parked(worker: Worker): void {
    this.scheduler.parked(worker)
  }

  // ---- fibers and fiber-local values ------------------------------------------------------------------------------------------

  /** Runs an Effect whose services are in `env`. */
  fork(effect: Effect.Effect<unknown, unknown>, env: FiberRefs.FiberRefs): AnyFiber {
    const runtime = Runtime.make({
      context: fiberRefValue(env, FiberRef.currentContext) as Context.Context<never>,
      runtimeFlags: this.runtimeFlags,
      fiberRefs: env,
    })
    return Runtime.runFork(runtime, effect)
  }

  sleep(ms: number): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      const cancel = this.timers.after(ms, () => resume(Effect.void))
      return Effect.sync(cancel)
    })
  }

  /** What an actor spawned by `fiber` starts its handlers with: services, loggers, tracer and so on, but no span of the spawner. */
  envOf(fiber: AnyFiber): FiberRefs.FiberRefs {
    const refs = fiberRefsOf(fiber)
    if (refs === this.lastRefs) return this.lastEnv
    let env = this.envs.get(refs)
    if (env === undefined) {
      env = sameFiberRefs(refs, this.lastRefs) ? this.lastEnv : this.derive(refs)
      this.envs.set(refs, env)
      this.envs.set(env, env)
    }
    this.lastRefs = refs
    this.lastEnv = env
    return env
  }

  private derive(refs: FiberRefs.FiberRefs): FiberRefs.FiberRefs {
    const context = fiberRefValue(refs, FiberRef.currentContext)
    const own = refs.pipe(
      FiberRefs.delete(FiberRef.interruptedCause),
      FiberRefs.delete(FiberRef.currentRuntimeFlags),
      FiberRefs.delete(FiberRef.currentLogSpan),
      FiberRefs.delete(forkScopeOverride),
    )
    const set = <A>(left: FiberRefs.FiberRefs, fiberRef: FiberRef.FiberRef<A>, value: A) =>
      FiberRefs.updateAs(left, { fiberId: FiberId.none as FiberId.Single, fiberRef, value })
    const withScheduler = set(own, FiberRef.currentScheduler, this.scheduler)
    const quiet = set(withScheduler, FiberRef.unhandledErrorLogLevel, Option.none())
    return set(
      quiet,
      FiberRef.currentContext,
      Context.omit(Tracer.ParentSpan)(context as Context.Context<Tracer.ParentSpan>),
    )
  }

  // ---- spawn ------------------------------------------------------------------------------------------------------------------

  /** Called by the spawning fiber. */
  spawn<S, M, R>(
    fiber: AnyFiber,
    behavior: Behavior<S, M, R>,
    parent: Cell,
    options: SpawnOptions | undefined,
  ): Effect.Effect<ActorRef<M>, SpawnError> {
    const cell = this.start(behavior, parent, options, this.envOf(fiber))
    if (cell instanceof SpawnError) return Effect.fail(cell)
    return cell.status < STARTING ? Effect.succeed(cell) : this.awaitUp(cell)
  }

  /** A child that is up, or whose `init` goes on. */
  start<S, M, R>(
    behavior: Behavior<S, M, R>,
    parent: Cell,
    options: SpawnOptions | undefined,
    env: FiberRefs.FiberRefs,
  ): Cell | SpawnError {
    const { hooks } = parent.behavior
    const refused = hooks?.refuse?.(parent) ?? null
    if (refused !== null) return spawnError(parent, options?.name ?? behavior.name, refused)
    const spec = hooks?.childDefaults === undefined ? options : withDefaults(options, hooks.childDefaults)
    const cell = this.newCell(behavior, parent, spec, env)
    if (cell instanceof Cell) launch(cell, null)
    return cell
  }

  /** A cell in its parent's list, not launched. */
  newCell<S, M, R>(
    behavior: Behavior<S, M, R>,
    parent: Cell,
    options: SpawnOptions | undefined,
    env: FiberRefs.FiberRefs,
  ): Cell | SpawnError {
    const name = options?.name
    if (name !== undefined && !nameShape.test(name)) {
      throw new RangeError(`spawn.name: expected a name without "/" or spaces, got ${JSON.stringify(name)}`)
    }
    if (parent.status >= STOPPING) return spawnError(parent, name ?? behavior.name, "parent_down")
    if (name !== undefined) {
      const { extras } = parent
      extras.childNames ??= new Set()
      if (extras.childNames.has(name)) return spawnError(parent, name, "name_taken")
      extras.childNames.add(name)
    }
    // The kernel keeps state and messages untyped; the services R are in `env`.
    const cell = new Cell(this, parent, behavior as unknown as CellBehavior, childSpec(options?.childSpec), env)
    if (name !== undefined) cell.extras.name = name
    return cell
  }

  /** Waits until `cell` is up; an interrupted spawner stops it. */
  private awaitUp(cell: Cell): Effect.Effect<Cell, SpawnError> {
    return Effect.async<Cell, SpawnError>((resume) => {
      if (cell.status === DEAD) return resume(Effect.fail(startFailed(cell, cell.state as StopReason)))
      cell.extras.starting = {
        supervised: false,
        up: () => resume(Effect.succeed(cell)),
        failed: (reason) => resume(Effect.fail(startFailed(cell, reason))),
      }
      return Effect.sync(() => halt(cell, { final: true, quiet: true, shutdownMs: 0 }))
    })
  }

  // ---- reports ----------------------------------------------------------------------------------------------------------------

  reportCrash(cell: Cell, cause: Cause.Cause<unknown>): void {
    const level = fiberRefValue(cell.env, FiberRef.currentMinimumLogLevel)
    if (LogLevel.greaterThan(level, LogLevel.Warning)) return
    // The tracer logger adds to the current span, and here is none.
    const loggers = HashSet.remove(fiberRefValue(cell.env, FiberRef.currentLoggers), Logger.tracerLogger)
    if (HashSet.size(loggers) === 0) return
    const log = Effect.logWarning(`actor ${cell.path} crashed: ${describeCause(cause)}`, cause)
    this.fork(Effect.annotateLogs(log, { actor: cell.path }), cell.env)
  }

  readonly tree = (): Effect.Effect<TreeNode> => Effect.sync(() => snapshot(this.guardian))

  /** Stops every actor, newest first, each within its own shutdown deadline. */
  close(): Effect.Effect<void> {
    return Effect.async<void>((resume) => {
      halt(this.guardian, { final: true }, () => {
        this.deadlines.close()
        resume(Effect.void)
      })
    })
  }
}

const guardianBehavior: CellBehavior = {
  kind: "supervisor",
  name: "guardian",
  init: () => null,
  receive: () => Effect.succeed(null),
  describe: () => "guardian",
}

const withDefaults = (options: SpawnOptions | undefined, defaults: Partial<ChildSpec>): SpawnOptions => ({
  ...options,
  childSpec: { ...defaults, ...options?.childSpec },
})

const spawnError = (parent: Cell, name: string | undefined, problem: SpawnError["problem"]): SpawnError =>
  withoutStack(() => new SpawnError({ path: `${parent.path}/${name ?? "actor"}`, problem, cause: null }))

/** Why a spawn did not bring the actor up. */
export const startFailed = (cell: Cell, reason: StopReason): SpawnError =>
  withoutStack(() =>
    reason._tag === "Crashed"
      ? new SpawnError({ path: cell.path, problem: "init_failed", cause: reason.cause })
      : new SpawnError({ path: cell.path, problem: "stopped", cause: null }),
  )
