/**
 * Artifacts in SQLite: statements, and what a commit does with them inside the writer's transaction.
 */
import type { ArtifactReads, ArtifactRemoval } from "../artifact-port.ts"
import { decodeArtifact } from "../decode.ts"
import type { Reading } from "../reading.ts"
import type { Commit } from "../store.ts"
import type { Database } from "./connection.ts"

const columns =
  "conversation, name, media_type AS mediaType, size, created_at AS createdAt, updated_at AS updatedAt, seq"

export const artifactReadStatements = {
  artifact: `SELECT ${columns}, content FROM artifacts WHERE conversation = ? AND name = ?`,
  artifacts: `SELECT ${columns} FROM artifacts WHERE conversation = ? ORDER BY name`,
} as const

export const artifactWriteStatements = {
  artifactPut:
    "INSERT INTO artifacts (conversation, name, media_type, size, content, created_at, updated_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (conversation, name) DO UPDATE SET media_type = excluded.media_type, size = excluded.size, content = excluded.content, updated_at = excluded.updated_at, seq = excluded.seq",
  artifactRemove: "DELETE FROM artifacts WHERE conversation = ? AND name = ?",
} as const

type PutRow = readonly [number, string, string, number, Buffer, number, number]

/** The artifact parts of a commit as parameters. */
export interface EncodedArtifacts {
  readonly puts: ReadonlyArray<PutRow>
  readonly removals: ReadonlyArray<ArtifactRemoval>
}

/** Null where a commit has no artifacts. Copies the contents; also notes the conversations that must exist. */
export const encodeArtifacts = (commit: Commit, touched: Set<number>): EncodedArtifacts | null => {
  if (commit.artifacts === undefined && commit.removeArtifacts === undefined) return null
  const puts = (commit.artifacts ?? []).map(({ conversation, name, mediaType, content, at }): PutRow => {
    touched.add(conversation)
    return [conversation, name, mediaType, content.length, Buffer.from(content), at, at]
  })
  return { puts, removals: commit.removeArtifacts ?? [] }
}

export const prepareArtifactWrites = (db: Database): ((artifacts: EncodedArtifacts, seq: number) => void) => {
  const put = db.prepare<[...PutRow, number]>(artifactWriteStatements.artifactPut)
  const remove = db.prepare<[number, string]>(artifactWriteStatements.artifactRemove)
  return ({ puts, removals }, seq) => {
    for (const row of puts) put.run(...row, seq)
    for (const { conversation, name } of removals) remove.run(conversation, name)
  }
}

export const artifactReads = ({ many, one }: Reading): ArtifactReads => ({
  artifact: (conversation, name) =>
    one(artifactReadStatements.artifact, [conversation, name], (location, { content, ...row }) => ({
      artifact: decodeArtifact(location, row),
      content: new Uint8Array(content as Buffer),
    })),
  artifacts: (conversation) => many(artifactReadStatements.artifacts, [conversation], decodeArtifact),
})
