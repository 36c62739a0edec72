/**
 * `artifact_list`: the artifacts of the conversation.
 */
import { Effect, Schema } from "effect"
import { text } from "../domain/message.ts"
import { Artifacts, refused } from "./artifacts.ts"
import { defineTool } from "./define.ts"
import { counted, sizeText } from "./limits.ts"

const name = "artifact_list"

export const artifactListTool = defineTool({
  name,
  description: "Lists the artifacts of this conversation by name, with media type and size.",
  parameters: Schema.Struct({}),
  effects: ["read"],
  replay: "safe",
  execute: (_, { conversation }) =>
    Effect.gen(function* () {
      const list = yield* Effect.mapError(
        Effect.flatMap(Artifacts, (all) => all.list(conversation)),
        refused(name),
      )
      const lines = list.map((one) => `${one.name} (${one.mediaType}, ${sizeText(one.size)})`)
      const shown = list.map(({ mediaType, name: called, size, updatedAt }) => ({
        name: called,
        mediaType,
        size,
        updatedAt,
      }))
      const facts = { artifacts: shown }
      return {
        output: [text(lines.length === 0 ? "There are no artifacts yet." : lines.join("\n"))],
        structuredOutput: facts,
        details: { summary: counted(list.length, "artifact") },
      }
    }),
})
