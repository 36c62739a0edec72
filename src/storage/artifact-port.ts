/**
 * Artifacts in the storage port.
 */
import type { Effect } from "effect"
import type { Artifact } from "../domain/artifact.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { ReadError } from "./errors.ts"

/** Puts an artifact; one of that name is replaced and keeps its `createdAt`. */
export interface ArtifactWrite {
  readonly conversation: ConversationId
  readonly name: string
  readonly mediaType: string
  readonly content: Uint8Array
  /** Milliseconds since the epoch. */
  readonly at: number
}

/** Removes an artifact; nothing where there is none. */
export interface ArtifactRemoval {
  readonly conversation: ConversationId
  readonly name: string
}

export interface StoredArtifact {
  readonly artifact: Artifact
  readonly content: Uint8Array
}

export interface ArtifactReads {
  readonly artifact: (conversation: ConversationId, name: string) => Effect.Effect<StoredArtifact | null, ReadError>
  /** What there is, without contents, by name. */
  readonly artifacts: (conversation: ConversationId) => Effect.Effect<ReadonlyArray<Artifact>, ReadError>
}
