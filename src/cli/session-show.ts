/**
 * `super-pi session show ID`: the transcript as it reads.
 */
import { Effect } from "effect"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { transcriptText } from "../protocols/terminal/transcript.ts"
import type { Invocation } from "./arguments.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { readConversation } from "./session-read.ts"

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const { store, conversation } = yield* readConversation(invocation)
      const entries = yield* store.visibleEntries(conversation.id)
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ conversation, entries })}\n`)
        return ExitCode.ok
      }
      const paint = painter(traitsOf(process.stdout, process.env).color)
      const title = `${conversation.id}: ${oneLine(conversation.title ?? "(no title)")}`
      process.stdout.write(`${paint("dim", title)}\n\n`)
      if (entries.length > 0) process.stdout.write(`${transcriptText(entries, paint)}\n`)
      return ExitCode.ok
    }),
  )
