/**
 * Artifacts on plain records. Pure.
 */
import type { Artifact } from "../../domain/artifact.ts"
import type { Seq } from "../../domain/ids.ts"
import type { StoredArtifact } from "../artifact-port.ts"
import type { Commit } from "../store.ts"

/** By conversation and name. */
type Artifacts = ReadonlyMap<string, StoredArtifact>

const key = (conversation: number, name: string): string => `${conversation}/${name}`

/** The artifacts after the commit. */
export const applyArtifacts = (before: Artifacts, commit: Commit, seq: Seq): Artifacts => {
  if (commit.artifacts === undefined && commit.removeArtifacts === undefined) return before
  const rows = new Map(before)
  for (const { conversation, name, mediaType, content, at } of commit.artifacts ?? []) {
    const createdAt = rows.get(key(conversation, name))?.artifact.createdAt ?? at
    const artifact: Artifact = { conversation, name, mediaType, size: content.length, createdAt, updatedAt: at, seq }
    rows.set(key(conversation, name), { artifact, content: content.slice() })
  }
  for (const { conversation, name } of commit.removeArtifacts ?? []) rows.delete(key(conversation, name))
  return rows
}

export const artifactOf = (rows: Artifacts, conversation: number, name: string): StoredArtifact | null => {
  const found = rows.get(key(conversation, name))
  return found === undefined ? null : { ...found, content: found.content.slice() }
}

/** By name, in the order of their UTF-8 bytes. */
export const listArtifacts = (rows: Artifacts, conversation: number): ReadonlyArray<Artifact> =>
  [...rows.values()]
    .map((row) => row.artifact)
    .filter((artifact) => artifact.conversation === conversation)
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))
