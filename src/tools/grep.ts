/**
 * `grep`: lines of files that match.
 */
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { defineTool, toolFailure } from "./define.ts"
import { counted, outputChars, treeWork } from "./limits.ts"
import { sandboxed } from "./sandboxed.ts"
import type { FoundLine, SearchOutput } from "./search.ts"
import { existing } from "./target.ts"
import type { ToolContext, ToolResult } from "./tool.ts"

const name = "grep"
const defaultMatches = 100
const lineChars = 400

const Parameters = Schema.Struct({
  pattern: Schema.NonEmptyString.annotations({ description: "JavaScript regular expression, matched within a line" }),
  path: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "File or directory. Default: the workspace root" }),
  ),
  glob: Schema.optional(
    Schema.NonEmptyString.annotations({
      description: "Only these files, for example *.ts or src/**/*.{ts,tsx}; !*.md leaves out",
    }),
  ),
  literal: Schema.optional(Schema.Boolean.annotations({ description: "Take the pattern as plain text" })),
  ignoreCase: Schema.optional(Schema.Boolean.annotations({ description: "Ignore upper and lower case" })),
  context: Schema.optional(
    Schema.Int.pipe(Schema.between(0, 50)).annotations({ description: "Lines shown around each match. Default 0" }),
  ),
  limit: Schema.optional(
    Schema.Int.pipe(Schema.between(1, 2000)).annotations({
      description: `Matching lines at most. Default ${defaultMatches}`,
    }),
  ),
})

/** `path:12:text` for matches and `path-12-text` around them, `--` between places that do not touch. */
const render = (lines: ReadonlyArray<FoundLine>, prefix: string, context: number): string => {
  const out: Array<string> = []
  let previous: FoundLine | undefined
  for (const found of lines) {
    const touches = previous?.path === found.path && previous.line + 1 === found.line
    if (context > 0 && previous !== undefined && !touches) out.push("--")
    const mark = found.match ? ":" : "-"
    out.push(`${prefix}${found.path}${mark}${found.line}${mark}${found.text}`)
    previous = found
  }
  return out.join("\n")
}

const notesOf = (found: Extract<SearchOutput, { _tag: "Found" }>, limit: number): ReadonlyArray<string> => {
  const notes: Array<string> = []
  if (found.limit === "matches")
    notes.push(`Stopped at ${counted(limit, "match", "matches")}; there are more. Narrow the search, or raise limit.`)
  if (found.limit === "size") notes.push("Stopped because the result is long; there may be more. Narrow the search.")
  if (found.binary > 0) notes.push(`${counted(found.binary, "binary file")} skipped.`)
  if (found.unreadable > 0)
    notes.push(`${counted(found.unreadable, "file or directory", "files or directories")} could not be read.`)
  return notes
}

const execute = (args: typeof Parameters.Type, { workspace }: ToolContext) =>
  Effect.gen(function* () {
    const start = yield* existing(name, workspace, args.path ?? ".")
    const isDirectory = start.stat.isDirectory()
    if (!isDirectory && !start.stat.isFile()) {
      return yield* Effect.fail(
        toolFailure(name, `${args.path}: expected a file or directory, got a device, pipe or socket`),
      )
    }
    const limit = args.limit ?? defaultMatches
    const context = args.context ?? 0
    const found = yield* sandboxed(
      name,
      "grep",
      {
        path: start.canonical,
        top: workspace.root,
        isDirectory,
        pattern: args.pattern,
        literal: args.literal ?? false,
        ignoreCase: args.ignoreCase ?? false,
        glob: args.glob ?? null,
        context,
        limit,
        lineChars,
        totalChars: outputChars,
      },
      treeWork,
      "Search a smaller path or glob, or use a simpler pattern (nested repetition such as (a+)+ can take forever).",
    )
    if (found._tag === "InvalidPattern") {
      return yield* Effect.fail(
        toolFailure(
          name,
          `pattern: expected a regular expression, got ${JSON.stringify(args.pattern)} (${found.reason}). To search for that text, set literal.`,
        ),
      )
    }
    const { display } = start
    const prefix = !isDirectory
      ? display.slice(0, display.lastIndexOf("/") + 1)
      : display === "."
        ? ""
        : display.endsWith("/")
          ? display
          : `${display}/`
    const body = render(found.lines, prefix, context)
    const nothing = `No matches in ${counted(found.searched, "file")}.`
    const notes = notesOf(found, limit)
    const facts = { matches: found.matches, files: found.files, searched: found.searched, limit: found.limit }
    const result: ToolResult = {
      output: [
        text([body === "" ? nothing : body, ...(notes.length > 0 ? [`[${notes.join(" ")}]`] : [])].join("\n\n")),
      ],
      structuredOutput: {
        ...facts,
        lines: found.lines.map(({ path, line, text: content, match }) => ({
          path: prefix + path,
          line,
          text: content,
          match,
        })),
      },
      details: { ...facts, binary: found.binary, unreadable: found.unreadable },
    }
    return result
  })

export const grepTool = defineTool({
  name,
  description: [
    "Searches the contents of files and gives matching lines as `path:line:text`, in path order.",
    "Looks into hidden files; leaves out binary files, .git and what .gitignore ignores (unless named by path), and does not follow symbolic links.",
  ].join(" "),
  parameters: Parameters,
  effects: ["read"],
  replay: "safe",
  execute,
})
