/**
 * The sandbox port: pure, synchronous work on a worker thread, under a deadline and a heap limit. What runs there can end its own call
 * and nothing else.
 */
import { Context, type Effect, Schema } from "effect"
import type { JobInput, JobName, JobOutput } from "./jobs.ts"

/** The job did not end in time; its thread was ended. `at` is what it was working on, for example a file. */
export class SandboxTimeout extends Schema.TaggedError<SandboxTimeout>()("SandboxTimeout", {
  job: Schema.String,
  deadlineMs: Schema.Number,
  at: Schema.NullOr(Schema.String),
}) {
  override get message() {
    return `${this.job} did not end within ${this.deadlineMs / 1000} s${this.at === null ? "" : ` (at ${this.at})`}`
  }
}

/** The job needed more heap than it may use; its thread was ended. */
export class SandboxOutOfMemory extends Schema.TaggedError<SandboxOutOfMemory>()("SandboxOutOfMemory", {
  job: Schema.String,
  heapMb: Schema.Number,
  at: Schema.NullOr(Schema.String),
}) {
  override get message() {
    return `${this.job} needed more than ${this.heapMb} MB of memory${this.at === null ? "" : ` (at ${this.at})`}`
  }
}

/** The job threw, or its thread could not start or ended by itself: a fault of ours. */
export class SandboxCrashed extends Schema.TaggedError<SandboxCrashed>()("SandboxCrashed", {
  job: Schema.String,
  reason: Schema.String,
}) {
  override get message() {
    return `${this.job} broke: ${this.reason}`
  }
}

export type SandboxError = SandboxTimeout | SandboxOutOfMemory | SandboxCrashed

/** Limits of one job. */
export interface SandboxLimits {
  readonly deadlineMs: number
  /** JavaScript heap of the thread; buffers outside the heap do not count. */
  readonly heapMb: number
}

/** What {@link Sandbox} does. */
export interface SandboxService {
  /** Runs a job. The deadline counts from the moment that a thread takes it; interruption ends the thread. */
  readonly run: <J extends JobName>(
    job: J,
    input: JobInput<J>,
    limits: SandboxLimits,
  ) => Effect.Effect<JobOutput<J>, SandboxError>
}

/** In-process work under a deadline and a heap limit. */
export class Sandbox extends Context.Tag("super-pi/Sandbox")<Sandbox, SandboxService>() {}
