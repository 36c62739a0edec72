/**
 * The store of artifacts as a service, so that an application can keep them elsewhere (an object store); by default in the database.
 * Rules: names are relative paths ({@link artifactNameFault}); an artifact is replaced whole; it goes with its conversation.
 */
import { Clock, Context, Effect, Layer, Schema } from "effect"
import { type Artifact, artifactLimits } from "../domain/artifact.ts"
import { artifactNameFault } from "../domain/artifact-name.ts"
import { ConversationId } from "../domain/ids.ts"
import type { StoredArtifact } from "./artifact-port.ts"
import type { CommitError, ReadError } from "./errors.ts"
import { Store } from "./store.ts"

/** The caller's mistake: a bad name or media type, too large, too many. Nothing was written. */
export class InvalidArtifact extends Schema.TaggedError<InvalidArtifact>()("InvalidArtifact", {
  /** `name`, `mediaType`, `content` or `conversation`. */
  field: Schema.String,
  detail: Schema.String,
}) {
  override get message() {
    return `${this.field}: ${this.detail}`
  }
}

export class ArtifactNotFound extends Schema.TaggedError<ArtifactNotFound>()("ArtifactNotFound", {
  conversation: ConversationId,
  name: Schema.String,
}) {
  override get message() {
    return `there is no artifact ${JSON.stringify(this.name)}; artifact_list shows what there is`
  }
}

export interface ArtifactPut {
  readonly conversation: ConversationId
  readonly name: string
  readonly mediaType: string
  readonly content: Uint8Array
}

export interface ArtifactStoreService {
  readonly limits: ArtifactLimits
  /** Puts an artifact; one of that name is replaced. Durable when it answers. */
  readonly put: (artifact: ArtifactPut) => Effect.Effect<Artifact, InvalidArtifact | CommitError | ReadError>
  readonly get: (
    conversation: ConversationId,
    name: string,
  ) => Effect.Effect<StoredArtifact, ArtifactNotFound | ReadError>
  /** What there is, without contents, by name. */
  readonly list: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<Artifact>, ReadError>
  readonly remove: (
    conversation: ConversationId,
    name: string,
  ) => Effect.Effect<void, ArtifactNotFound | CommitError | ReadError>
}

export interface ArtifactLimits {
  /** Bytes of one artifact at most. */
  readonly maxBytes: number
  /** Artifacts of one conversation at most. */
  readonly maxCount: number
}

const mediaTypePattern = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;.*)?$/

/** What is wrong with an artifact by itself, or null. */
const fault = ({ name, mediaType, content }: ArtifactPut, limits: ArtifactLimits): InvalidArtifact | null => {
  const badName = artifactNameFault(name)
  if (badName !== null) return new InvalidArtifact({ field: "name", detail: badName })
  if (!mediaTypePattern.test(mediaType)) {
    const detail = `expected a media type like text/markdown, got ${JSON.stringify(mediaType)}`
    return new InvalidArtifact({ field: "mediaType", detail })
  }
  if (content.length > limits.maxBytes) {
    const detail = `expected at most ${limits.maxBytes} bytes, got ${content.length}`
    return new InvalidArtifact({ field: "content", detail })
  }
  return null
}

/** Where artifacts are. {@link ArtifactStore.database} is the default. */
export class ArtifactStore extends Context.Tag("super-pi/ArtifactStore")<ArtifactStore, ArtifactStoreService>() {
  /** In the database of the node. */
  static database(limits: Partial<ArtifactLimits> = {}): Layer.Layer<ArtifactStore, never, Store> {
    return Layer.effect(ArtifactStore, makeDatabaseArtifacts({ ...artifactLimits, ...limits }))
  }
}

const makeDatabaseArtifacts = (limits: ArtifactLimits): Effect.Effect<ArtifactStoreService, never, Store> =>
  Effect.gen(function* () {
    const store = yield* Store
    // the count is read before the commit: one put at a time
    const oneByOne = yield* Effect.makeSemaphore(1)
    return {
      limits,
      put: (put) =>
        Effect.gen(function* () {
          const wrong = fault(put, limits)
          if (wrong !== null) return yield* wrong
          const { conversation, name, mediaType, content } = put
          const there = yield* store.artifacts(conversation)
          const before = there.find((artifact) => artifact.name === name)
          if (before === undefined && there.length >= limits.maxCount) {
            const detail = `expected at most ${limits.maxCount} artifacts in conversation ${conversation}; replace or remove one`
            return yield* new InvalidArtifact({ field: "conversation", detail })
          }
          const at = yield* Clock.currentTimeMillis
          const seq = yield* store.commit({ artifacts: [{ conversation, name, mediaType, content, at }] })
          const createdAt = before?.createdAt ?? at
          return { conversation, name, mediaType, size: content.length, createdAt, updatedAt: at, seq }
        }).pipe(oneByOne.withPermits(1)),
      get: (conversation, name) =>
        Effect.flatMap(store.artifact(conversation, name), (found) =>
          found === null ? new ArtifactNotFound({ conversation, name }) : Effect.succeed(found),
        ),
      list: (conversation) => store.artifacts(conversation),
      remove: (conversation, name) =>
        Effect.gen(function* () {
          const there = yield* store.artifacts(conversation)
          if (!there.some((artifact) => artifact.name === name)) {
            return yield* new ArtifactNotFound({ conversation, name })
          }
          yield* store.commit({ removeArtifacts: [{ conversation, name }] })
        }),
    }
  })
