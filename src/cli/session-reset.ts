/**
 * `super-pi session reset ID`: the conversation's next request starts from nothing, or from a handoff note. This writes, so it goes through
 * the owner of the database.
 */
import { Effect } from "effect"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { idOf } from "./session-read.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const conversationId = idOf(invocation)
  const handoff = invocation.get(option.handoff) ?? null
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const receipt = yield* sessions.reset({ conversationId, handoff, requestId: null })
      const words =
        receipt.status === "queued"
          ? `conversation ${conversationId} is busy: its context begins anew after the present calls or the answer`
          : `conversation ${conversationId} goes on in a new context${handoff === null ? "" : ", from the note"}`
      process.stdout.write(`${invocation.get(option.json) === true ? JSON.stringify(receipt) : words}\n`)
      return ExitCode.ok
    }),
  )
}
