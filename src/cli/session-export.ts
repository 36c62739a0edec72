/**
 * `super-pi session export ID`: a conversation as Markdown, or with `--json` every record of it.
 */
import { Effect } from "effect"
import { transcriptMarkdown } from "../protocols/terminal/transcript.ts"
import type { Invocation } from "./arguments.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { readConversation } from "./session-read.ts"

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const { store, conversation } = yield* readConversation(invocation)
      const { id } = conversation
      const entries = yield* store.visibleEntries(id)
      if (invocation.get(option.json) === true) {
        const [documents, tasks, submissions] = yield* Effect.all([
          store.documents(id),
          store.openTasks(id),
          store.openSubmissions(id),
        ])
        const whole = {
          format: "super-pi.session",
          version: 1,
          conversation,
          entries,
          documents,
          openTasks: tasks,
          openSubmissions: submissions,
        }
        process.stdout.write(`${JSON.stringify(whole, null, 2)}\n`)
      } else {
        process.stdout.write(`${transcriptMarkdown(conversation.title ?? `Conversation ${id}`, entries)}\n`)
      }
      return ExitCode.ok
    }),
  )
