/**
 * `artifact_get`: shows an artifact, or writes it into the workspace.
 */
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { type ArtifactContent, Artifacts, refused } from "./artifacts.ts"
import { writeAtomically } from "./atomic-write.ts"
import { defineTool, toolFailure } from "./define.ts"
import { describeBinary, sniffImage } from "./file-kind.ts"
import type { FileLocks } from "./file-lock.ts"
import { maxImageChars, maxImageSide, outputChars, sizeText } from "./limits.ts"
import { whileLocked } from "./locked.ts"
import { textIn } from "./media-type.ts"
import { attempt, target } from "./target.ts"
import type { ToolFailure, ToolResult, Workspace } from "./tool.ts"

const name = "artifact_get"

const Parameters = Schema.Struct({
  name: Schema.NonEmptyString.annotations({ description: "Name, as artifact_list shows it" }),
  to_path: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "File of the workspace to write it to, instead of showing it" }),
  ),
})

const elsewhere = "Give to_path to write it into the workspace."

/** The artifact as the model sees it: text, an image, or what it is. */
const shown = ({ artifact, content }: ArtifactContent): ToolResult => {
  const facts = { name: artifact.name, mediaType: artifact.mediaType, size: artifact.size }
  const about = `${artifact.name}: ${artifact.mediaType}, ${sizeText(artifact.size)}`
  const bytes = Buffer.from(content.buffer, content.byteOffset, content.byteLength)
  const image = sniffImage(bytes)
  if (image !== undefined) {
    const data = bytes.toString("base64")
    const tooLarge =
      data.length > maxImageChars || (image.width ?? 0) > maxImageSide || (image.height ?? 0) > maxImageSide
    return tooLarge
      ? { output: [text(`${about}, too large to be shown. ${elsewhere}`)], structuredOutput: facts, details: facts }
      : {
          output: [text(about), { type: "image", mediaType: image.mediaType, data }],
          structuredOutput: facts,
          details: facts,
        }
  }
  const body = textIn(content)
  if (body === undefined) {
    const { what } = describeBinary(bytes)
    return { output: [text(`${about}, ${what}. ${elsewhere}`)], structuredOutput: facts, details: facts }
  }
  const cut = body.length > outputChars
  const note = cut ? `\n\n[The first ${outputChars / 1024} KB of ${sizeText(artifact.size)}. ${elsewhere}]` : ""
  return {
    output: [text(`${body.slice(0, outputChars)}${note}`)],
    structuredOutput: { ...facts, text: body.slice(0, outputChars), truncated: cut },
    details: { ...facts, truncated: cut },
  }
}

const written = (
  { artifact, content }: ArtifactContent,
  workspace: Workspace,
  path: string,
): Effect.Effect<ToolResult, ToolFailure, FileLocks> =>
  Effect.gen(function* () {
    const first = yield* target(name, workspace, path, "write")
    return yield* whileLocked(name, workspace, [first.canonical], (sure) =>
      Effect.gen(function* () {
        // Again, now that nobody else writes.
        const file = yield* target(name, workspace, path, "write")
        if (file.stat !== null && !file.stat.isFile()) {
          const got = file.stat.isDirectory()
            ? "a directory. Give the name of a file in it"
            : "a device, pipe or socket"
          return yield* Effect.fail(toolFailure(name, `${path}: expected a file, got ${got}.`))
        }
        const write = attempt(name, path, () => writeAtomically(file.canonical, content, file.stat, sure))
        yield* Effect.uninterruptible(write)
        const facts = { name: artifact.name, path: file.display, size: artifact.size, created: file.stat === null }
        const how = file.stat === null ? "Created" : "Overwrote"
        return {
          output: [text(`${how} ${file.display} with ${artifact.name} (${sizeText(artifact.size)}).`)],
          structuredOutput: facts,
          details: facts,
        }
      }),
    )
  })

export const artifactGetTool = defineTool({
  name,
  description:
    "Gets an artifact of this conversation: text and images are shown, anything else is described. With to_path it is written into the workspace instead.",
  parameters: Parameters,
  effects: ["read"],
  effectsOf: ({ to_path }) => (to_path === undefined ? ["read"] : ["read", "fs_write"]),
  replay: "safe",
  execute: (args, { conversation, workspace }) =>
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const found = yield* Effect.mapError(artifacts.get(conversation, args.name), refused(name))
      return args.to_path === undefined ? shown(found) : yield* written(found, workspace, args.to_path)
    }),
})
