/**
 * `write`: a whole file, created or replaced atomically.
 */
import { constants } from "node:fs"
import { access } from "node:fs/promises"
import { Effect, Schema } from "effect"
import type { Json } from "../domain/json.ts"
import { text } from "../domain/message.ts"
import { writeAtomically } from "./atomic-write.ts"
import { defineTool, toolFailure } from "./define.ts"
import { readWhole } from "./file-text.ts"
import { counted, diffLines, editBytes, textWork } from "./limits.ts"
import { whileLocked } from "./locked.ts"
import { Sandbox } from "./sandbox.ts"
import { attempt, target } from "./target.ts"
import { decodeText, detectFormat } from "./text-encoding.ts"
import type { ToolContext, ToolResult } from "./tool.ts"

const name = "write"

const Parameters = Schema.Struct({
  path: Schema.NonEmptyString.annotations({ description: "File, relative to the workspace or absolute" }),
  content: Schema.String.annotations({ description: "The whole new content" }),
})

/** Lines of a text; a last line without an end counts. */
const linesIn = (content: string): number =>
  content === "" ? 0 : content.split("\n").length - (content.endsWith("\n") ? 1 : 0)

/** What changed, for people; null where there is no text to compare or the comparison was ended. */
const diffOf = (before: string, after: string) =>
  Effect.flatMap(Sandbox, (sandbox) => sandbox.run("diff", { before, after, diffLines }, textWork)).pipe(
    Effect.map(
      (diff): Json => ({ diff: diff.text, added: diff.added, removed: diff.removed, truncated: diff.truncated }),
    ),
    // The file matters, not its picture.
    Effect.orElseSucceed((): Json => null),
  )

const execute = (args: typeof Parameters.Type, { workspace }: ToolContext) =>
  Effect.gen(function* () {
    const first = yield* target(name, workspace, args.path, "write")
    return yield* whileLocked(name, workspace, [first.canonical], (sure) =>
      Effect.gen(function* () {
        // Again, now that nobody else writes: it may have come into being while waiting.
        const file = yield* target(name, workspace, args.path, "write")
        const { stat } = file
        if (stat?.isDirectory() === true) {
          return yield* Effect.fail(
            toolFailure(name, `${args.path}: expected a file, got a directory. Give the name of a file in it.`),
          )
        }
        if (stat !== null && !stat.isFile()) {
          return yield* Effect.fail(
            toolFailure(name, `${args.path}: expected a regular file, got a device, pipe or socket`),
          )
        }
        const bytes = Buffer.from(args.content, "utf8")
        let before: string | undefined = stat === null ? "" : undefined
        if (stat !== null) {
          yield* attempt(name, args.path, () => access(file.canonical, constants.W_OK))
          if (stat.size <= editBytes) {
            const old = yield* attempt(name, args.path, () => readWhole(file.canonical, editBytes))
            const format = detectFormat(old)
            before = format === undefined ? undefined : decodeText(old, format)
          }
        }
        yield* Effect.uninterruptible(
          attempt(name, args.path, () => writeAtomically(file.canonical, bytes, stat, sure)),
        )
        const lines = linesIn(args.content)
        const size = `${counted(lines, "line")}, ${counted(bytes.length, "byte")}`
        const was = before === undefined ? "" : `; it had ${counted(linesIn(before), "line")}`
        const summary =
          stat === null
            ? `Created ${file.display} (${size}).`
            : before === args.content
              ? `${file.display} already had this content (${size}).`
              : `Overwrote ${file.display} (${size}${was}).`
        const change = before === undefined || bytes.length > editBytes ? null : yield* diffOf(before, args.content)
        const facts = { path: file.display, created: stat === null, lines, bytes: bytes.length }
        const result: ToolResult = {
          output: [text(summary)],
          structuredOutput: facts,
          details: { ...facts, change },
        }
        return result
      }),
    )
  })

export const writeTool = defineTool({
  name,
  description:
    "Writes a whole file: creates it, with missing directories, or replaces all of its content. To change part of a file use edit.",
  parameters: Parameters,
  effects: ["fs_write"],
  replay: "unsafe",
  execute,
})
