/**
 * Artifacts: named results of a conversation that outlive its workspace.
 */
import { Schema } from "effect"
import { ConversationId, Seq } from "./ids.ts"

/** What is known of an artifact without its content. */
export const Artifact = Schema.Struct({
  conversation: ConversationId,
  /** Unique within the conversation, like a relative path: `report.md`, `web/abc.md`. */
  name: Schema.NonEmptyString,
  mediaType: Schema.NonEmptyString,
  /** Bytes. */
  size: Schema.NonNegativeInt,
  createdAt: Schema.Int,
  updatedAt: Schema.Int,
  seq: Seq,
})
export type Artifact = typeof Artifact.Type

/** Bytes of one artifact and artifacts of one conversation at most, unless the settings say otherwise. */
export const artifactLimits = { maxBytes: 10 * 1024 * 1024, maxCount: 200 } as const
