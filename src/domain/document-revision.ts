/**
 * Revisions of rewindable documents: a base holds the whole value, a delta the operations on the revision before it. Pure.
 */
import { Either } from "effect"
import type { DocumentTail } from "./document-definition.ts"
import { applyOperations, diff, type PatchOperation } from "./document-patch.ts"
import type { Seq } from "./ids.ts"
import type { Json } from "./json.ts"

/** One stored revision. `version` is that of the definition that wrote it. */
export type DocumentRevision =
  | { readonly type: "base"; readonly seq: Seq; readonly version: number; readonly value: Json }
  | {
      readonly type: "delta"
      readonly seq: Seq
      readonly version: number
      readonly operations: ReadonlyArray<PatchOperation>
    }

const utf8 = new TextEncoder()

/** UTF-8 bytes of a value as JSON. */
const bytesOf = (value: unknown): number => utf8.encode(JSON.stringify(value)).length

/** The tail behind a base. */
export const noTail: DocumentTail = { deltas: 0, bytes: 0 }

/** The deltas at the end of a chain that starts with its base. */
export const tailOf = (revisions: ReadonlyArray<DocumentRevision>): DocumentTail =>
  revisions.reduce<DocumentTail>(
    (tail, revision) =>
      revision.type === "base" ? noTail : { deltas: tail.deltas + 1, bytes: tail.bytes + bytesOf(revision.operations) },
    noTail,
  )

/** How a change is stored: as operations, or whole (null), with the tail that it leaves. */
export interface DocumentChange {
  readonly operations: ReadonlyArray<PatchOperation> | null
  readonly tail: DocumentTail
}

const whole: DocumentChange = { operations: null, tail: noTail }

/** Whether a change is stored as a base, given the tail that it would leave and the size of its value in UTF-8 bytes. */
export type CheckpointRule = (tail: DocumentTail, size: number) => boolean

/** How the step from `before` to `after` is stored behind `tail`: as operations where these are shorter than the value and `rule` allows it. */
export const changeOf = (before: Json, after: Json, tail: DocumentTail, rule: CheckpointRule): DocumentChange => {
  const operations = diff(before, after)
  if (operations === null) return whole
  const size = bytesOf(after)
  const bytes = bytesOf(operations)
  const longer = { deltas: tail.deltas + 1, bytes: tail.bytes + bytes }
  return bytes > size || rule(longer, size) ? whole : { operations, tail: longer }
}

/** The value and version at the end of a chain of revisions (a base, then its deltas), or what is wrong with which of them. */
export const replay = (
  revisions: ReadonlyArray<DocumentRevision>,
): Either.Either<
  { readonly version: number; readonly value: Json },
  { readonly seq: Seq; readonly detail: string }
> => {
  const [base, ...deltas] = revisions
  if (base === undefined) throw new RangeError("expected at least one revision, got none")
  if (base.type === "delta") return Either.left({ seq: base.seq, detail: "expected a base first, got a delta" })
  let value: Json = structuredClone(base.value)
  let version = base.version
  for (const revision of deltas) {
    if (revision.type === "base") value = structuredClone(revision.value)
    else {
      const applied = applyOperations(value, revision.operations)
      if (Either.isLeft(applied)) return Either.left({ seq: revision.seq, detail: applied.left })
      value = applied.right
    }
    version = revision.version
  }
  return Either.right({ version, value })
}
