/**
 * `super-pi session show ID`: the transcript as it reads.
 */
import { Effect } from "effect"
import { contextMarks } from "../domain/context-marks.ts"
import type { Entry } from "../domain/entry.ts"
import { parkedWords } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { entryLine, transcriptText } from "../protocols/terminal/transcript.ts"
import type { Invocation } from "./arguments.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { howToGoOn } from "./result.ts"
import { runCommand } from "./runtime.ts"
import { readConversation } from "./session-read.ts"

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const { store, conversation } = yield* readConversation(invocation)
      const entries = yield* store.visibleEntries(conversation.id)
      const parked = (yield* store.openTasks(conversation.id)).find((task) => task.parked !== null)?.parked ?? null
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify({ conversation, parked, entries })}\n`)
        return ExitCode.ok
      }
      const paint = painter(traitsOf(process.stdout, process.env).color)
      const title = `${conversation.id}: ${oneLine(conversation.title ?? "(no title)")}`
      process.stdout.write(`${paint("dim", title)}\n\n`)
      const { parent } = conversation
      if (parent !== null) {
        const from = `forked from conversation ${parent.conversation} at #${parent.entry}`
        process.stdout.write(`${paint("dim", from)}\n\n`)
      }
      const marks = contextMarks(entries)
      const above = (entry: Entry) => entryLine(entry, conversation.id, marks.get(entry.id))
      if (entries.length > 0) process.stdout.write(`${transcriptText(entries, paint, above)}\n`)
      if (parked !== null)
        process.stdout.write(`\n${paint("warning", `${parkedWords(parked)}; ${howToGoOn(conversation.id)}`)}\n`)
      return ExitCode.ok
    }),
  )
