/**
 * The run queue: actors with mail and resumed fibers, in order of arrival, drained by one worker at a time. It is the Scheduler of
 * every fiber that the kernel runs, so a handler's own fibers take their turns in the same queue.
 *
 * A drain runs in a microtask for at most SLICE_MS, then lets timers and I/O have their turn.
 */
import type { Exit, Fiber, Scheduler } from "effect"
import { Effect } from "effect"
import type { Cell } from "./cell.ts"
import { opCountOf } from "./effect-internals.ts"
import type { Kernel } from "./kernel.ts"
import { QUEUED } from "./status.ts"
import { Worker } from "./worker.ts"

/** Parked workers kept for later. */
const POOL = 64
const SLICE_MS = 4
/** Operations of one fiber before others have their turn; Effect's own default. */
const MAX_OPS = 2_048
/** Drains in a row from microtasks before one goes through the event loop. */
const MAX_MICROTASKS = 1_024
/** How many takes share one reading of the time (a power of two less one). */
const CLOCK_EVERY = 15

/** Workers on the stack above one another. */
const MAX_NESTED = 16

type Task = Cell | (() => void)

export class RunQueue implements Scheduler.Scheduler {
  private readonly kernel: Kernel
  private queue: Array<Task> = []
  private head = 0
  private scheduled = false
  private takes = 0
  private microtasks = 0
  private sliceStart = 0
  private over = false
  /** The worker that may take from the queue. */
  private active: Worker | null = null
  private readonly pool: Array<Worker> = []
  /** Resumed fibers on the stack. */
  private nested = 0
  /** Set while a worker parks: no yield between its last look at the queue and the park. */
  private parking = false
  /** Set while a parked worker is woken: its resumption runs here and now. */
  private waking = false
  private woken: (() => void) | null = null

  constructor(kernel: Kernel) {
    this.kernel = kernel
  }

  post(task: Task): void {
    this.queue.push(task)
    if (this.scheduled) return
    this.scheduled = true
    if (++this.microtasks < MAX_MICROTASKS) {
      queueMicrotask(this.drain)
    } else {
      this.microtasks = 0
      setImmediate(this.drain)
    }
  }

  scheduleTask(task: () => void): void {
    if (this.waking) {
      this.waking = false
      this.woken = task
    } else {
      this.post(task)
    }
  }

  shouldYield(fiber: Fiber.RuntimeFiber<unknown, unknown>): number | false {
    return opCountOf(fiber) > MAX_OPS && !this.parking ? 0 : false
  }

  /**
   * The next actor for `worker`; resumed fibers run on the way. Null when there is none or the slice is over.
   *
   * A resumed fiber may be a worker that has come to the end of its handler. It goes on with the queue then, until it suspends or
   * there is nothing left, instead of parking for the worker beneath it on the stack to do so.
   */
  take(worker: Worker): Cell | null {
    if (this.active !== worker) {
      if (this.nested === 0 || this.nested > MAX_NESTED) return null
      this.active = worker
    }
    for (;;) {
      const task = this.next()
      if (task === undefined) {
        this.active = null
        return null
      }
      if (typeof task === "function") {
        this.nested++
        task()
        this.nested--
        this.active = worker
      } else if (task.status === QUEUED) return task
    }
  }

  /** Reads the time: whether timers and I/O should have their turn. */
  sliceOver(): boolean {
    if (!this.over) this.over = performance.now() - this.sliceStart > SLICE_MS
    return this.over
  }

  mayPark(): boolean {
    if (this.pool.length >= POOL) return false
    this.parking = true
    return true
  }

  parked(worker: Worker): void {
    this.pool.push(worker)
    this.parking = false
  }

  private next(): Task | undefined {
    const { queue } = this
    if (this.head === queue.length) return undefined
    if (this.over || ((++this.takes & CLOCK_EVERY) === 0 && this.sliceOver())) return undefined
    const task = queue[this.head]
    this.head++
    if (this.head > 4_096 && this.head * 2 > queue.length) {
      this.queue = queue.slice(this.head)
      this.head = 0
    }
    return task
  }

  private readonly drain = (): void => {
    this.sliceStart = performance.now()
    this.over = false
    this.nested = 0
    for (;;) {
      this.work()
      this.active = null
      this.parking = false
      if (this.head === this.queue.length) {
        this.queue.length = 0
        this.head = 0
        this.scheduled = false
        return
      }
      if (this.sliceOver()) {
        setImmediate(this.drain)
        return
      }
    }
  }

  /** Lets one worker run until it suspends, rests or ends. */
  private work(): void {
    const idle = this.pool.pop()
    if (idle !== undefined) {
      this.active = idle
      this.wake(idle)
      return
    }
    const worker = new Worker(this.kernel)
    this.active = worker
    const fiber = this.kernel.fork(worker.loop, this.kernel.env)
    const ended = (exit: Exit.Exit<unknown, unknown>) => worker.ended(exit)
    const exit = fiber.unsafePoll()
    if (exit === null) fiber.addObserver(ended)
    else ended(exit)
  }

  private wake(worker: Worker): void {
    const { wake } = worker
    worker.wake = null
    this.waking = true
    wake?.(Effect.void)
    this.waking = false
    const run = this.woken
    this.woken = null
    run?.()
  }
}
