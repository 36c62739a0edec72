/**
 * What the artifact tools need of a store of artifacts. A node binds it to its `ArtifactStore`; failures are already in words for the model.
 */
import { Context, Data, Effect, Layer } from "effect"
import type { Artifact } from "../domain/artifact.ts"
import { artifactLimits } from "../domain/artifact.ts"
import type { ConversationId, Seq } from "../domain/ids.ts"
import { toolFailure } from "./define.ts"
import type { ToolFailure } from "./tool.ts"

/** The store refused or failed; `message` says what was expected and what came. */
export class ArtifactRefused extends Data.TaggedError("ArtifactRefused")<{ readonly message: string }> {}

export interface ArtifactContent {
  readonly artifact: Artifact
  readonly content: Uint8Array
}

export interface ArtifactsService {
  /** Bytes of one artifact at most. */
  readonly maxBytes: number
  /** Puts an artifact; one of that name is replaced. */
  readonly put: (artifact: {
    readonly conversation: ConversationId
    readonly name: string
    readonly mediaType: string
    readonly content: Uint8Array
  }) => Effect.Effect<Artifact, ArtifactRefused>
  readonly get: (conversation: ConversationId, name: string) => Effect.Effect<ArtifactContent, ArtifactRefused>
  /** By name. */
  readonly list: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<Artifact>, ArtifactRefused>
}

/** The artifacts of the conversations whose tools run here. */
export class Artifacts extends Context.Tag("super-pi/tools/Artifacts")<Artifacts, ArtifactsService>() {
  /** Forgotten with the layer, without checks of names: for tools without a node. */
  static readonly inMemory: Layer.Layer<Artifacts> = Layer.sync(Artifacts, () => inMemory())
}

/** A refusal as the failure of a tool. */
export const refused =
  (tool: string) =>
  (error: ArtifactRefused): ToolFailure =>
    toolFailure(tool, error.message)

const inMemory = (): ArtifactsService => {
  const kept = new Map<string, ArtifactContent>()
  const keyOf = (conversation: ConversationId, name: string) => `${conversation}/${name}`
  let changes = 0
  return {
    maxBytes: artifactLimits.maxBytes,
    put: ({ content, ...what }) =>
      Effect.sync(() => {
        const key = keyOf(what.conversation, what.name)
        const at = ++changes
        const createdAt = kept.get(key)?.artifact.createdAt ?? at
        // Its order among the changes of this store stands for time and commit.
        const artifact: Artifact = { ...what, size: content.length, createdAt, updatedAt: at, seq: at as Seq }
        kept.set(key, { artifact, content })
        return artifact
      }),
    get: (conversation, name) =>
      Effect.suspend(() => {
        const found = kept.get(keyOf(conversation, name))
        const message = `there is no artifact ${JSON.stringify(name)}; artifact_list shows what there is`
        return found === undefined ? new ArtifactRefused({ message }) : Effect.succeed(found)
      }),
    list: (conversation) =>
      Effect.sync(() =>
        [...kept.values()]
          .map(({ artifact }) => artifact)
          .filter((artifact) => artifact.conversation === conversation)
          .sort((a, b) => (a.name < b.name ? -1 : 1)),
      ),
  }
}
