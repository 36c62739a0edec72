/**
 * Sandbox jobs as the tools use them: what ends a job becomes a failure that the model can act on.
 */
import { Effect } from "effect"
import { toolFailure } from "./define.ts"
import type { JobInput, JobName, JobOutput } from "./jobs.ts"
import { Sandbox, type SandboxLimits } from "./sandbox.ts"
import type { ToolFailure } from "./tool.ts"

/** Runs a job for a tool; `advice` says what to try when it takes too much time or memory. */
export const sandboxed = <J extends JobName>(
  tool: string,
  job: J,
  input: JobInput<J>,
  limits: SandboxLimits,
  advice: string,
): Effect.Effect<JobOutput<J>, ToolFailure, Sandbox> =>
  Effect.flatMap(Sandbox, (sandbox) =>
    Effect.mapError(sandbox.run(job, input, limits), (error) =>
      toolFailure(
        tool,
        error._tag === "SandboxCrashed" ? error.message : `${error.message} and was stopped. ${advice}`,
        { reason: error._tag },
      ),
    ),
  )
