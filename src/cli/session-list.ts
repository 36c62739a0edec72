/**
 * `super-pi session list`: reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import { sessionSummary } from "../actors/session-summary.ts"
import { ago } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import { truncate } from "../protocols/terminal/width.ts"
import type { ConversationSummary } from "../storage/store.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** A table of conversations. Pure. */
export const listing = (
  rows: ReadonlyArray<ConversationSummary>,
  now: number,
  columns: number | null,
): Array<string> => {
  const cells = rows.map(({ conversation, entries, busy, parked }) => ({
    id: String(conversation.id),
    when: ago(conversation.updatedAt, now),
    entries: `${entries} ${entries === 1 ? "entry" : "entries"}`,
    title: `${parked !== null ? "[parked] " : busy ? "[busy] " : ""}${oneLine(conversation.title ?? "(no title)")}`,
  }))
  const width = (of: (cell: (typeof cells)[number]) => string) => Math.max(0, ...cells.map((cell) => of(cell).length))
  const [ids, whens, counts] = [width((cell) => cell.id), width((cell) => cell.when), width((cell) => cell.entries)]
  return cells.map((cell) => {
    const line = `${cell.id.padStart(ids)}  ${cell.when.padEnd(whens)}  ${cell.entries.padStart(counts)}  ${cell.title}`
    return columns === null ? line : truncate(line, columns - 1)
  })
}

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const rows =
        store === null
          ? []
          : yield* store.conversations({ principal: "local", limit: invocation.get(option.limit) ?? 100 })
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(rows.map(sessionSummary))}\n`)
        return ExitCode.ok
      }
      const traits = traitsOf(process.stdout, process.env)
      if (rows.length === 0) process.stderr.write("no conversations yet; start one with: super-pi\n")
      const lines = listing(rows, Date.now(), traits.cursor ? (process.stdout.columns ?? 80) : null)
      const paint = painter(traits.color)
      for (const [index, line] of lines.entries()) {
        process.stdout.write(`${rows[index]?.busy === true ? paint("accent", line) : line}\n`)
      }
      return ExitCode.ok
    }),
  )
