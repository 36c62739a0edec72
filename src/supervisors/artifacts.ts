/**
 * The artifacts of the tools, bound to the node's store of artifacts.
 */
import { Effect, Layer } from "effect"
import { ArtifactStore } from "../storage/artifacts.ts"
import { ArtifactRefused, Artifacts } from "../tools/artifacts.ts"

const inWords = <A>(effect: Effect.Effect<A, { readonly message: string }>): Effect.Effect<A, ArtifactRefused> =>
  Effect.mapError(effect, ({ message }) => new ArtifactRefused({ message }))

export const artifactsLayer: Layer.Layer<Artifacts, never, ArtifactStore> = Layer.effect(
  Artifacts,
  Effect.map(ArtifactStore, (store) => ({
    maxBytes: store.limits.maxBytes,
    put: (artifact) => inWords(store.put(artifact)),
    get: (conversation, name) => inWords(store.get(conversation, name)),
    list: (conversation) => inWords(store.list(conversation)),
  })),
)
