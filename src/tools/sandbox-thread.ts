/**
 * One sandbox thread. It runs one job at a time and is reused while it lives; a deadline, an interruption, a full heap or a crash ends it
 * for good. `idle → running → idle`, `idle | running → dead`.
 */
import { once } from "node:events"
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import type { JobInput, JobName, JobOutput } from "./jobs.ts"
import { SandboxCrashed, type SandboxError, type SandboxLimits, SandboxOutOfMemory, SandboxTimeout } from "./sandbox.ts"
import { type JobAnswer, type JobRequest, readStatus, statusBytes } from "./sandbox-wire.ts"
import { type WorkerProgram, workerProgram } from "./worker-program.ts"

interface Running {
  readonly id: number
  readonly settle: (outcome: Effect.Effect<unknown, SandboxError>) => void
  readonly died: (reason: Error | string) => SandboxError
}

/** Stack of a thread: regular expressions and walks need little. */
const stackMb = 4

export class SandboxThread {
  readonly heapMb: number
  readonly #worker: Worker
  readonly #status: Uint8Array
  #running: Running | undefined
  #alive = true
  #jobs = 0

  private constructor(program: WorkerProgram, heapMb: number) {
    this.heapMb = heapMb
    const shared = new SharedArrayBuffer(statusBytes)
    this.#status = new Uint8Array(shared)
    const options = {
      workerData: shared,
      // The thread reads files and nothing else: no environment, no flags of the host process.
      env: {},
      execArgv: [],
      resourceLimits: {
        maxOldGenerationSizeMb: heapMb,
        maxYoungGenerationSizeMb: Math.min(32, heapMb),
        stackSizeMb: stackMb,
      },
    }
    this.#worker =
      "file" in program ? new Worker(program.file, options) : new Worker(program.code, { ...options, eval: true })
    this.#worker.on("message", (answer: JobAnswer) => this.#answered(answer))
    this.#worker.on("error", (error) => this.#ended(error instanceof Error ? error : String(error)))
    this.#worker.on("exit", (code) => this.#ended(`its thread ended with code ${code}`))
    // An idle thread does not keep the process alive; one that starts is waited for.
    this.#worker.once("online", () => this.#worker.unref())
  }

  /** Starts a thread with a heap limit; done when the thread runs, so that its start does not count for the first job. */
  static start(job: string, heapMb: number): Effect.Effect<SandboxThread, SandboxCrashed> {
    return Effect.tryPromise({
      try: async () => {
        const thread = new SandboxThread(await workerProgram(), heapMb)
        const [event] = await Promise.race([
          once(thread.#worker, "online").then(() => [] as const),
          once(thread.#worker, "exit").then(([code]) => [`its thread ended with code ${code}`] as const),
        ])
        if (event !== undefined) throw new Error(event)
        return thread
      },
      catch: (error) => new SandboxCrashed({ job, reason: error instanceof Error ? error.message : String(error) }),
    })
  }

  /** Whether it can take a job. */
  get alive(): boolean {
    return this.#alive
  }

  /** Runs a job on an idle thread. The deadline is of real time: it limits a processor, not a schedule. */
  run<J extends JobName>(job: J, input: JobInput<J>, limits: SandboxLimits): Effect.Effect<JobOutput<J>, SandboxError> {
    const { deadlineMs } = limits
    const outcome = Effect.async<unknown, SandboxError>((resume) => {
      const id = ++this.#jobs
      const timer = setTimeout(() => {
        const at = readStatus(this.#status)
        this.#finish(id)
        this.stop()
        resume(Effect.fail(new SandboxTimeout({ job, deadlineMs, at })))
      }, deadlineMs)
      this.#running = {
        id,
        settle: (result) => {
          clearTimeout(timer)
          resume(result)
        },
        died: (reason) =>
          reason instanceof Error && (reason as NodeJS.ErrnoException).code === "ERR_WORKER_OUT_OF_MEMORY"
            ? new SandboxOutOfMemory({ job, heapMb: this.heapMb, at: readStatus(this.#status) })
            : new SandboxCrashed({ job, reason: reason instanceof Error ? reason.message : reason }),
      }
      this.#worker.ref()
      const request: JobRequest = { id, job, input }
      try {
        this.#worker.postMessage(request)
      } catch (error) {
        // Input that cannot be cloned.
        this.#fail(id, new SandboxCrashed({ job, reason: error instanceof Error ? error.message : String(error) }))
      }
      return Effect.sync(() => {
        clearTimeout(timer)
        this.#finish(id)
        this.stop()
      })
    })
    // The thread answers with what the job of that name returned.
    return outcome as Effect.Effect<JobOutput<J>, SandboxError>
  }

  /** Ends the thread, whatever it does. Repeated calls change nothing. */
  stop(): void {
    if (!this.#alive) return
    this.#alive = false
    void this.#worker.terminate()
  }

  #answered(answer: JobAnswer): void {
    const running = this.#running
    if (running === undefined || running.id !== answer.id) return
    this.#finish(answer.id)
    running.settle(answer.ok ? Effect.succeed(answer.value) : Effect.fail(running.died(answer.reason)))
  }

  #fail(id: number, error: SandboxError): void {
    const running = this.#running
    this.#finish(id)
    running?.settle(Effect.fail(error))
  }

  #finish(id: number): void {
    if (this.#running?.id !== id) return
    this.#running = undefined
    this.#worker.unref()
  }

  #ended(reason: Error | string): void {
    this.#alive = false
    const running = this.#running
    if (running !== undefined) this.#fail(running.id, running.died(reason))
  }
}
