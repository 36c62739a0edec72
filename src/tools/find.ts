/**
 * `find`: files by name.
 */
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { defineTool } from "./define.ts"
import { counted, treeWork } from "./limits.ts"
import { sandboxed } from "./sandboxed.ts"
import { directoryTarget } from "./target.ts"
import type { ToolContext, ToolResult } from "./tool.ts"

const name = "find"
const defaultPaths = 500

const Parameters = Schema.Struct({
  pattern: Schema.NonEmptyString.annotations({
    description:
      "Glob. Without a slash it matches names at any depth (*.ts); with one, paths from the search directory (src/**/*.test.ts)",
  }),
  path: Schema.optional(Schema.NonEmptyString.annotations({ description: "Directory. Default: the workspace root" })),
  type: Schema.optional(Schema.Literal("file", "directory", "any").annotations({ description: "Default any" })),
  includeIgnored: Schema.optional(Schema.Boolean.annotations({ description: "Also what .gitignore ignores" })),
  limit: Schema.optional(
    Schema.Int.pipe(Schema.between(1, 5000)).annotations({ description: `Paths at most. Default ${defaultPaths}` }),
  ),
})

const execute = (args: typeof Parameters.Type, { workspace }: ToolContext) =>
  Effect.gen(function* () {
    const start = yield* directoryTarget(name, workspace, args.path ?? ".")
    const limit = args.limit ?? defaultPaths
    const found = yield* sandboxed(
      name,
      "find",
      {
        path: start.canonical,
        top: workspace.root,
        pattern: args.pattern,
        type: args.type ?? "any",
        ignored: args.includeIgnored ?? false,
        limit,
      },
      treeWork,
      "Search a smaller directory, or use a simpler pattern.",
    )
    const { display } = start
    const prefix = display === "." ? "" : display.endsWith("/") ? display : `${display}/`
    const paths = found.paths.map((path) => prefix + path)
    const notes: Array<string> = []
    if (found.more)
      notes.push(`Stopped at ${counted(limit, "path")}; there are more. Narrow the search, or raise limit.`)
    if (found.unreadable > 0) notes.push(`${counted(found.unreadable, "directory", "directories")} could not be read.`)
    const body =
      paths.length === 0
        ? `Nothing matches ${args.pattern} in ${display === "." ? "the workspace" : display}.`
        : paths.join("\n")
    const facts = { paths, more: found.more, unreadable: found.unreadable }
    const result: ToolResult = {
      output: [text(notes.length === 0 ? body : `${body}\n\n[${notes.join(" ")}]`)],
      structuredOutput: facts,
      details: { count: paths.length, more: found.more, unreadable: found.unreadable },
    }
    return result
  })

export const findTool = defineTool({
  name,
  description: [
    "Finds files and directories by a glob pattern, in path order; directories end with `/`.",
    "Includes hidden files; leaves out .git and what .gitignore ignores, and does not follow symbolic links.",
  ].join(" "),
  parameters: Parameters,
  effects: ["read"],
  replay: "safe",
  execute,
})
