/**
 * `read`: a file's text with line numbers, in windows; images as image parts.
 */
import { constants } from "node:fs"
import type { FileHandle } from "node:fs/promises"
import { Effect, Schema } from "effect"
import { text, type UserPart } from "../domain/message.ts"
import { clientText } from "./client-files.ts"
import { defineTool, toolFailure } from "./define.ts"
import { describeBinary, type ImageInfo, sniffImage } from "./file-kind.ts"
import { counted, lineChars, maxImageChars, maxImageSide, outputChars, sizeText } from "./limits.ts"
import { LineWindow } from "./line-window.ts"
import { attempt, type ExistingPath, fileFailure, fileTarget } from "./target.ts"
import { bomLength, detectFormat, sampleBytes, type TextFormat } from "./text-encoding.ts"
import type { ToolContext, ToolFailure, ToolResult } from "./tool.ts"
import { openInside } from "./workspace.ts"

const name = "read"
const defaultLines = 2000
const maxLines = 10_000
const chunkBytes = 256 * 1024
/** How much of a file is counted beyond the window to know its number of lines. */
const countBytes = 32 * 1024 * 1024
/** How long a file is read to reach the window. */
const deadlineMs = 20_000

const Parameters = Schema.Struct({
  path: Schema.NonEmptyString.annotations({ description: "File, relative to the workspace or absolute" }),
  offset: Schema.optional(
    Schema.Int.pipe(Schema.positive()).annotations({ description: "First line, from 1. Default 1" }),
  ),
  limit: Schema.optional(
    Schema.Int.pipe(Schema.between(1, maxLines)).annotations({ description: `Lines. Default ${defaultLines}` }),
  ),
})

const readFull = async (handle: FileHandle, buffer: Buffer): Promise<number> => {
  let size = 0
  while (size < buffer.length) {
    const { bytesRead } = await handle.read(buffer, size, buffer.length - size, size)
    if (bytesRead === 0) break
    size += bytesRead
  }
  return size
}

const readImage = (file: ExistingPath, handle: FileHandle, info: ImageInfo): Effect.Effect<ToolResult, ToolFailure> =>
  Effect.gen(function* () {
    const { size } = file.stat
    const pixels = info.width === null || info.height === null ? "unknown size" : `${info.width}x${info.height} pixels`
    const about = `${file.display}: ${info.mediaType}, ${pixels}, ${sizeText(size)}`
    const shrink = "Make a smaller copy with bash, for example with ImageMagick (convert -resize), and read that."
    if (Math.ceil(size / 3) * 4 > maxImageChars) {
      return yield* Effect.fail(toolFailure(name, `${about}: expected an image of at most 3.3 MB. ${shrink}`))
    }
    if ((info.width ?? 0) > maxImageSide || (info.height ?? 0) > maxImageSide) {
      return yield* Effect.fail(
        toolFailure(name, `${about}: expected at most ${maxImageSide} pixels a side. ${shrink}`),
      )
    }
    const bytes = Buffer.alloc(size)
    const read = yield* attempt(name, file.given, () => readFull(handle, bytes))
    const data = bytes.toString("base64", 0, read)
    const image: UserPart = { type: "image", mediaType: info.mediaType, data }
    const facts = { path: file.display, mediaType: info.mediaType, width: info.width, height: info.height, bytes: read }
    return { output: [text(about), image], structuredOutput: facts, details: facts }
  })

interface TextPage {
  readonly window: LineWindow
  /** Whether the whole file was seen, so that `window.count` is its number of lines. */
  readonly whole: boolean
  /** Whether it is the text of an editor's buffer. */
  readonly unsaved?: boolean
}

const readLines = async (
  handle: FileHandle,
  format: TextFormat,
  window: LineWindow,
  signal: AbortSignal,
): Promise<TextPage> => {
  const decoder = new TextDecoder(format.encoding, { ignoreBOM: true })
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let position = bomLength(format)
  let beyond = 0
  while (true) {
    if (signal.aborted) throw new Error("cancelled")
    const { bytesRead } = await handle.read(buffer, 0, chunkBytes, position)
    if (bytesRead === 0) break
    position += bytesRead
    window.feed(decoder.decode(buffer.subarray(0, bytesRead), { stream: true }))
    if (window.full) {
      beyond += bytesRead
      if (beyond > countBytes) return { window, whole: false }
    }
  }
  window.feed(decoder.decode())
  window.end()
  return { window, whole: true }
}

const present = (
  file: ExistingPath,
  format: TextFormat,
  page: TextPage,
  offset: number,
): Effect.Effect<ToolResult, ToolFailure> => {
  const { unsaved = false, whole, window } = page
  const { lines } = window
  const total = whole ? window.count : null
  const stored = format.encoding === "utf-8" ? null : `stored as ${format.encoding.toUpperCase()}`
  if (lines.length === 0 && window.count > 0) {
    const message = `offset: expected a line from 1 to ${window.count}, got ${offset} (${file.display} has ${counted(window.count, "line")})`
    return Effect.fail(toolFailure(name, message))
  }
  const last = offset + lines.length - 1
  const body = lines.map(({ text: line, cut }, index) => {
    const note = cut === 0 ? "" : `… [${counted(cut, "more character")} in this line]`
    return `${offset + index}\t${line}${note}`
  })
  const notes: Array<string> = []
  if (lines.length === 0) notes.push("The file is empty.")
  else if (total === null || last < total) {
    const of = total === null ? `more than ${window.count.toLocaleString("en-US")}` : total.toLocaleString("en-US")
    notes.push(`Lines ${offset} to ${last} of ${of}. Continue with offset=${last + 1}.`)
  }
  if (window.crlf) notes.push("Line ends are CRLF.")
  if (stored !== null) notes.push(`The file is ${stored}.`)
  if (unsaved) notes.push("With changes in the editor that are not saved yet.")
  if (whole && total !== 0 && last === total && !window.endsWithNewline)
    notes.push("No newline at the end of the file.")
  const output = body.join("\n") + (notes.length === 0 ? "" : `${body.length === 0 ? "" : "\n\n"}[${notes.join(" ")}]`)
  const facts = {
    path: file.display,
    startLine: lines.length === 0 ? 0 : offset,
    endLine: lines.length === 0 ? 0 : last,
    totalLines: total,
    truncated: total === null || last < total || lines.some(({ cut }) => cut > 0),
    ...(unsaved ? { unsaved } : {}),
  }
  return Effect.succeed({
    output: [text(output)],
    structuredOutput: { ...facts, text: lines.map((line) => line.text).join("\n") },
    details: { ...facts, encoding: format.encoding, bom: format.bom, crlf: window.crlf, bytes: file.stat.size },
  })
}

const execute = (args: typeof Parameters.Type, context: ToolContext): Effect.Effect<ToolResult, ToolFailure> =>
  Effect.scoped(
    Effect.gen(function* () {
      const instead = "Use ls to list it, find or grep to search it."
      const file = yield* fileTarget(name, context.workspace, args.path, instead, "read")
      const handle = yield* Effect.acquireRelease(
        attempt(name, args.path, () => openInside(file.canonical, constants.O_RDONLY)),
        (open) => Effect.ignore(Effect.tryPromise(() => open.close())),
      )
      const head = Buffer.alloc(Math.min(chunkBytes, Math.max(file.stat.size, sampleBytes)))
      const sample = head.subarray(0, yield* attempt(name, args.path, () => readFull(handle, head)))
      const image = sniffImage(sample)
      if (image !== undefined) return yield* readImage(file, handle, image)
      const format = detectFormat(sample.subarray(0, sampleBytes))
      if (format === undefined) {
        const { what, hint } = describeBinary(sample)
        return yield* Effect.fail(
          toolFailure(
            name,
            `${args.path}: expected a text file or an image, got ${what} of ${sizeText(file.stat.size)}. To look inside, ${hint}.`,
          ),
        )
      }
      const offset = args.offset ?? 1
      const window = new LineWindow({ offset, limit: args.limit ?? defaultLines, lineChars, totalChars: outputChars })
      const buffer = yield* clientText(context, file.canonical)
      if (buffer !== null) {
        window.feed(buffer)
        window.end()
        return yield* present(file, format, { window, whole: true, unsaved: true }, offset)
      }
      const page = yield* Effect.tryPromise({
        try: (signal) => readLines(handle, format, window, signal),
        catch: (error) => fileFailure(name, args.path, error),
      }).pipe(
        Effect.timeoutFail({
          duration: deadlineMs,
          onTimeout: () =>
            toolFailure(
              name,
              `${args.path}: line ${offset} was not reached within ${deadlineMs / 1000} s (${sizeText(file.stat.size)}). Use bash with tail, sed -n or split.`,
            ),
        }),
      )
      return yield* present(file, format, page, offset)
    }),
  )

export const readTool = defineTool({
  name,
  description: [
    "Reads a file. Text comes with line numbers: `number<TAB>line`; the number and the tab are not part of the file.",
    `Gives up to ${defaultLines} lines or ${outputChars / 1024} KB from \`offset\`; the result says how to continue. Lines over ${lineChars} characters are cut.`,
    "PNG, JPEG, GIF and WebP images are shown as images. For directories use ls, for finding text grep.",
  ].join(" "),
  parameters: Parameters,
  effects: ["read"],
  replay: "safe",
  execute,
})
