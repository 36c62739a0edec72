/**
 * `ls`: one directory.
 */
import { constants } from "node:fs"
import { access } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { defineTool } from "./define.ts"
import { counted, sizeText, treeWork } from "./limits.ts"
import type { ListedEntry } from "./listing.ts"
import { sandboxed } from "./sandboxed.ts"
import { attempt, directoryTarget } from "./target.ts"
import type { ToolContext, ToolResult } from "./tool.ts"

const name = "ls"
const defaultEntries = 500

const Parameters = Schema.Struct({
  path: Schema.optional(Schema.NonEmptyString.annotations({ description: "Directory. Default: the workspace root" })),
  includeIgnored: Schema.optional(Schema.Boolean.annotations({ description: "Also what .gitignore ignores" })),
  limit: Schema.optional(
    Schema.Int.pipe(Schema.between(1, 5000)).annotations({ description: `Entries at most. Default ${defaultEntries}` }),
  ),
})

const render = (entry: ListedEntry): string => {
  switch (entry.kind) {
    case "directory":
      return `${entry.name}/`
    case "symlink":
      return `${entry.name} -> ${entry.target}`
    case "file":
      return `${entry.name} (${sizeText(entry.size ?? 0)})`
    case "other":
      return `${entry.name} (not a regular file)`
  }
}

const execute = (args: typeof Parameters.Type, { workspace }: ToolContext) =>
  Effect.gen(function* () {
    const start = yield* directoryTarget(name, workspace, args.path ?? ".")
    yield* attempt(name, start.given, () => access(start.canonical, constants.R_OK))
    const limit = args.limit ?? defaultEntries
    const input = { path: start.canonical, top: workspace.root, ignored: args.includeIgnored ?? false, limit }
    const listed = yield* sandboxed(name, "ls", input, treeWork, "Use find with a pattern.")
    const { entries, hidden, hiddenCount } = listed
    const notes: Array<string> = []
    const more = listed.total - hiddenCount - entries.length
    if (more > 0) notes.push(`${counted(more, "more entry", "more entries")}; raise limit, or use find with a pattern.`)
    if (hiddenCount > 0) {
      const others = hiddenCount > hidden.length ? ` and ${hiddenCount - hidden.length} others` : ""
      notes.push(`Ignored, not shown: ${hidden.join(", ")}${others}.`)
    }
    const body = entries.length === 0 ? `${start.display} has no entries to show.` : entries.map(render).join("\n")
    const facts = { path: start.display, total: listed.total, ignored: hiddenCount, more }
    const result: ToolResult = {
      output: [text(notes.length === 0 ? body : `${body}\n\n[${notes.join(" ")}]`)],
      structuredOutput: { ...facts, entries: entries.map((entry) => ({ ...entry })) },
      details: facts,
    }
    return result
  })

export const lsTool = defineTool({
  name,
  description:
    "Lists a directory in name order, hidden files included: directories end with `/`, files show their size, links their target. Names what .gitignore ignores apart.",
  parameters: Parameters,
  effects: ["read"],
  replay: "safe",
  execute,
})
