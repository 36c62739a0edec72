/**
 * A pool of sandbox threads: at most `size` jobs at once, the others wait in order; idle threads are reused and end after a while.
 */
import { Effect, Layer } from "effect"
import type { JobInput, JobName } from "./jobs.ts"
import { Sandbox, type SandboxLimits, type SandboxService } from "./sandbox.ts"
import { SandboxThread } from "./sandbox-thread.ts"
import { Slots } from "./slots.ts"

export interface SandboxPoolOptions {
  /** Threads at most. Default 2. */
  readonly size?: number
  /** How long an idle thread is kept, in milliseconds. Default 30,000. */
  readonly idleMs?: number
}

/** A {@link Sandbox} without actors: for embedding and tests. Its threads end with the scope. */
export const sandboxPool = (options: SandboxPoolOptions = {}): Layer.Layer<Sandbox> =>
  Layer.scoped(
    Sandbox,
    Effect.gen(function* () {
      const { size = 2, idleMs = 30_000 } = options
      const idle = new Map<SandboxThread, NodeJS.Timeout>()
      const places = new Slots(Array.from({ length: size }, (_, number) => ({ number })))

      const take = (job: JobName, heapMb: number) =>
        Effect.suspend(() => {
          // The one used last is the warmest.
          for (const [thread, timer] of [...idle].reverse()) {
            if (thread.heapMb !== heapMb || !thread.alive) continue
            clearTimeout(timer)
            idle.delete(thread)
            return Effect.succeed(thread)
          }
          return SandboxThread.start(job, heapMb)
        })
      const give = (thread: SandboxThread) =>
        Effect.sync(() => {
          if (!thread.alive) return
          const timer = setTimeout(() => {
            idle.delete(thread)
            thread.stop()
          }, idleMs)
          timer.unref()
          idle.set(thread, timer)
          // Threads with another heap limit count too: the oldest goes.
          for (const [oldest, expiry] of idle) {
            if (idle.size <= size) break
            clearTimeout(expiry)
            idle.delete(oldest)
            oldest.stop()
          }
        })
      yield* Effect.addFinalizer(() =>
        Effect.sync(() => {
          for (const [thread, timer] of idle) {
            clearTimeout(timer)
            thread.stop()
          }
          idle.clear()
        }),
      )
      const run = <J extends JobName>(job: J, input: JobInput<J>, limits: SandboxLimits) =>
        places.use(() =>
          Effect.acquireUseRelease(take(job, limits.heapMb), (thread) => thread.run(job, input, limits), give),
        )
      return { run } satisfies SandboxService
    }),
  )
