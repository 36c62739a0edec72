/**
 * Commands that write: through the owner of the database, or owning it for a moment. What came of it is printed in words, or as JSON.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Failure } from "../domain/failure.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

export const runChange = <A>(
  invocation: Invocation,
  change: (sessions: SessionsService) => Effect.Effect<A, Failure>,
  words: (changed: A) => string,
): Promise<number> => {
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const changed = yield* change(yield* openSessions(options))
      process.stdout.write(`${invocation.get(option.json) === true ? JSON.stringify(changed) : words(changed)}\n`)
      return ExitCode.ok
    }),
  )
}
