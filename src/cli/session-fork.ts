/**
 * `super-pi session fork ID`: a conversation of its own from an entry of another. This writes, so it goes through the owner of the
 * database.
 */
import { Effect } from "effect"
import { EntryId } from "../domain/ids.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { idOf } from "./session-read.ts"

export const main = async (invocation: Invocation): Promise<number> => {
  const conversationId = idOf(invocation)
  const at = invocation.get(option.at)
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const fork = yield* sessions.fork({
        conversationId,
        entryId: at === undefined ? null : EntryId.make(at),
        agent: {},
        title: null,
        requestId: null,
      })
      const said =
        invocation.get(option.json) === true
          ? JSON.stringify(fork)
          : `conversation ${fork.conversation_id} is a fork of ${conversationId}; go on with: super-pi --conversation ${fork.conversation_id}`
      process.stdout.write(`${said}\n`)
      return ExitCode.ok
    }),
  )
}
