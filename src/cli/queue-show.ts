/**
 * `super-pi queue show ID`: one job with its failures. Reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { jobDetails, jobIdOf } from "./queue-read.ts"
import { runCommand } from "./runtime.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const id = jobIdOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const job = store === null ? null : yield* store.job(id)
      if (job === null) {
        return yield* Effect.fail(new CommandFailure(`job ${id} was not found; see: super-pi queue list`))
      }
      const lines = invocation.get(option.json) === true ? [JSON.stringify(job)] : jobDetails(job)
      for (const line of lines) process.stdout.write(`${line}\n`)
      return ExitCode.ok
    }),
  )
}
