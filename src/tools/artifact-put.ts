/**
 * `artifact_put`: keeps a text or a file of the workspace under a name, beyond the workspace's life.
 */
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { Artifacts, refused } from "./artifacts.ts"
import { defineTool, toolFailure } from "./define.ts"
import { readWhole } from "./file-text.ts"
import { sizeText } from "./limits.ts"
import { mediaTypeOf } from "./media-type.ts"
import { attempt, fileTarget } from "./target.ts"
import type { ToolContext, ToolFailure } from "./tool.ts"

const name = "artifact_put"

const Parameters = Schema.Struct({
  name: Schema.NonEmptyString.annotations({ description: "Name, like a relative path: report.md" }),
  content: Schema.optional(Schema.String.annotations({ description: "Text to keep; or give path" })),
  path: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "File of the workspace to keep; or give content" }),
  ),
  mediaType: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "For example text/csv. Default: found by content and name" }),
  ),
})

const contentOf = (
  { content, path }: typeof Parameters.Type,
  { workspace }: ToolContext,
  maxBytes: number,
): Effect.Effect<Uint8Array, ToolFailure> => {
  if ((content === undefined) === (path === undefined)) {
    const got = content === undefined ? "neither" : "both"
    return Effect.fail(toolFailure(name, `expected either content or path, got ${got}`))
  }
  if (content !== undefined) return Effect.succeed(Buffer.from(content, "utf8"))
  const given = path ?? ""
  return Effect.flatMap(
    fileTarget(name, workspace, given, "Pack it with bash, for example with tar.", "read"),
    (file) =>
      file.stat.size > maxBytes
        ? Effect.fail(
            toolFailure(name, `${given}: expected at most ${sizeText(maxBytes)}, got ${sizeText(file.stat.size)}`),
          )
        : attempt(name, given, () => readWhole(file.canonical, maxBytes)),
  )
}

export const artifactPutTool = defineTool({
  name,
  description:
    "Keeps a text (content) or a file of the workspace (path) as an artifact of this conversation. It outlives the workspace; a second put under the same name replaces it.",
  parameters: Parameters,
  effects: ["read", "state_write"],
  replay: "safe",
  execute: (args, context) =>
    Effect.gen(function* () {
      const artifacts = yield* Artifacts
      const content = yield* contentOf(args, context, artifacts.maxBytes)
      const { conversation } = context
      const mediaType = args.mediaType ?? mediaTypeOf(args.path ?? args.name, content)
      const put = artifacts.put({ conversation, name: args.name, mediaType, content })
      const kept = yield* Effect.mapError(put, refused(name))
      const replaced = kept.createdAt !== kept.updatedAt
      const facts = { name: kept.name, mediaType, size: kept.size, replaced }
      const what = `${kept.name} (${mediaType}, ${sizeText(kept.size)})`
      return {
        output: [text(replaced ? `Replaced ${what}.` : `Kept ${what}.`)],
        structuredOutput: facts,
        details: facts,
      }
    }),
})
