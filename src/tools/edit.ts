/**
 * `edit`: replaces texts in a file, all of one call or none.
 */
import { constants } from "node:fs"
import { access } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { writeAtomically } from "./atomic-write.ts"
import { clientText } from "./client-files.ts"
import { defineTool, toolFailure } from "./define.ts"
import type { EditFault, EditOutput } from "./edits.ts"
import { readWhole } from "./file-text.ts"
import { counted, diffLines, editBytes, sizeText, textWork } from "./limits.ts"
import { whileLocked } from "./locked.ts"
import { sandboxed } from "./sandboxed.ts"
import { attempt, type ExistingPath, fileTarget } from "./target.ts"
import { decodeText, detectFormat, encodeText, sampleBytes, type TextFormat } from "./text-encoding.ts"
import type { ToolContext, ToolFailure, ToolResult } from "./tool.ts"

const name = "edit"

const Parameters = Schema.Struct({
  path: Schema.NonEmptyString.annotations({ description: "File, relative to the workspace or absolute" }),
  edits: Schema.Array(
    Schema.Struct({
      oldText: Schema.NonEmptyString.annotations({
        description: "Text of the file to replace, with enough of its surroundings to be the only such text",
      }),
      newText: Schema.String.annotations({ description: "What to put in its place" }),
      replaceAll: Schema.optional(
        Schema.Boolean.annotations({
          description: "Replace every occurrence. Default false: there must be exactly one",
        }),
      ),
    }),
  )
    .pipe(Schema.minItems(1))
    .annotations({
      description: "Replacements. Each is found in the file as it was before the call; they must not overlap",
    }),
})

const listed = (lines: ReadonlyArray<number>, count: number): string => {
  const shown = lines.join(", ")
  return count > lines.length ? `${shown} and ${count - lines.length} more` : shown
}

/** Why an edit failed and what to do. */
const explain = (fault: EditFault, path: string, several: boolean): string => {
  const which = `edits[${fault.edit}]`
  switch (fault.reason) {
    case "notFound": {
      const head = `${which}.oldText: expected a text of ${path}, got one that is not in it.`
      const [nearest] = fault.places
      if (nearest === undefined) return `${head} Nothing in the file resembles it; read the file again.`
      const places = fault.places.map((place) =>
        place.lines.map((line, index) => `${place.line + index}\t${line}`).join("\n"),
      )
      return `${head} The nearest ${places.length === 1 ? "place is" : "places are"}:\n${places.join("\n--\n")}`
    }
    case "ambiguous":
      return `${which}.oldText: expected a text that is in ${path} once, got one that is there ${fault.count} times (lines ${listed(fault.lines, fault.count)}). Include more of the surrounding lines, or set replaceAll.`
    case "overlap":
      return `${which}: expected a place that no other edit changes, got one that overlaps edits[${fault.other}] at line ${fault.line}. Make them one edit.`
    case "unchanged":
      return `${which}.newText: expected a text other than oldText, got the same${several ? "; leave this edit out" : ""}.`
  }
}

const rejected = (faults: ReadonlyArray<EditFault>, path: string, several: boolean): ToolFailure =>
  toolFailure(
    name,
    [...faults.map((fault) => explain(fault, path, several)), "Nothing was changed."].join("\n\n"),
    JSON.parse(JSON.stringify({ faults })),
  )

interface Loaded {
  readonly format: TextFormat
  readonly content: string
}

/** An editor's text with the line ends of the file: editors keep them apart. */
const withLineEnds = (buffer: string, content: string): string =>
  content.includes("\r\n") && !buffer.includes("\r\n") ? buffer.replace(/\n/g, "\r\n") : buffer

const load = (file: ExistingPath, context: ToolContext): Effect.Effect<Loaded, ToolFailure> =>
  Effect.gen(function* () {
    const { given, stat } = file
    if (stat.size > editBytes) {
      const message = `${given}: expected a file of at most ${sizeText(editBytes)}, got ${sizeText(stat.size)}. Use bash, for example with sed -i.`
      return yield* Effect.fail(toolFailure(name, message))
    }
    yield* attempt(name, given, () => access(file.canonical, constants.W_OK))
    const bytes = yield* attempt(name, given, () => readWhole(file.canonical, editBytes))
    const format = detectFormat(bytes.subarray(0, sampleBytes))
    const content = format === undefined ? undefined : decodeText(bytes, format)
    if (format === undefined || content === undefined) {
      const what = format === undefined ? "a binary file" : `bytes that are not valid ${format.encoding.toUpperCase()}`
      return yield* Effect.fail(
        toolFailure(name, `${given}: expected a text file, got ${what}. Use bash to change it.`),
      )
    }
    const buffer = yield* clientText(context, file.canonical)
    return { format, content: buffer === null ? content : withLineEnds(buffer, content) }
  })

const present = (
  file: ExistingPath,
  edited: Extract<EditOutput, { _tag: "Edited" }>,
  format: TextFormat,
): ToolResult => {
  const { counts, lenient, diff, firstLine } = edited
  const total = counts.reduce((sum, count) => sum + count, 0)
  const note =
    lenient.length === 0
      ? ""
      : ` ${lenient.map((index) => `edits[${index}]`).join(", ")} matched only after ignoring trailing blanks and typographic quotes, dashes and spaces; check the result.`
  const facts = { path: file.display, replacements: total, added: diff.added, removed: diff.removed, firstLine }
  return {
    output: [
      text(
        `Edited ${file.display}: ${counted(total, "replacement")}, +${diff.added} -${diff.removed} lines, first at line ${firstLine}.${note}`,
      ),
    ],
    structuredOutput: facts,
    details: {
      ...facts,
      counts,
      lenient,
      encoding: format.encoding,
      bom: format.bom,
      change: { diff: diff.text, added: diff.added, removed: diff.removed, truncated: diff.truncated },
    },
  }
}

const execute = (args: typeof Parameters.Type, context: ToolContext) =>
  Effect.gen(function* () {
    const { workspace } = context
    const instead = "Give the name of a file in it."
    const first = yield* fileTarget(name, workspace, args.path, instead, "write")
    return yield* whileLocked(name, workspace, [first.canonical], (sure) =>
      Effect.gen(function* () {
        const file = yield* fileTarget(name, workspace, args.path, instead, "write")
        const { format, content } = yield* load(file, context)
        const edits = args.edits.map((edit) => ({ ...edit, replaceAll: edit.replaceAll ?? false }))
        const advice = "Make smaller edits, or use bash."
        const edited = yield* sandboxed(name, "edit", { text: content, edits, diffLines }, textWork, advice)
        if (edited._tag === "Rejected") {
          return yield* Effect.fail(rejected(edited.faults, file.display, edits.length > 1))
        }
        const bytes = encodeText(edited.text, format)
        yield* Effect.uninterruptible(
          attempt(name, args.path, () => writeAtomically(file.canonical, bytes, file.stat, sure)),
        )
        return present(file, edited, format)
      }),
    )
  })

export const editTool = defineTool({
  name,
  description: [
    "Changes a text file by replacing exact texts: every oldText must be in the file exactly once (or set replaceAll), as it is in the file,",
    "with its indentation and without the line numbers that read shows. All edits of a call are applied or none.",
    "Line ends, encoding and byte order mark of the file are kept. To create a file use write.",
  ].join(" "),
  parameters: Parameters,
  effects: ["fs_write"],
  replay: "unsafe",
  execute,
})
