/**
 * Checkpoints: what the calls of one turn changed in a workspace, with what was there before. Pure: how changes add up, and what an undo
 * has to do. The files are read and written in `src/harness/plugins/git-checkpoint/`.
 *
 * 1. A checkpoint is committed, with everything needed to go back, before the first call of its turn changes anything.
 * 2. Of one path the first `before` and the last `after` count; where a change began from something else than the last one left, somebody
 *    else was there: `foreign`.
 *    Of calls that overlapped nobody can tell: there the `before` of the one that began first counts, and nothing is foreign.
 * 3. An undo is a checkpoint of its own, of kind `undo`, and is undone like any other.
 */
import { Schema } from "effect"
import { defineDocument } from "./document-definition.ts"

/** What was at a path. `mode` are the permission bits; a file's content is kept under its SHA-256. */
export const Image = Schema.Union(
  Schema.Struct({ type: Schema.Literal("absent") }),
  Schema.Struct({ type: Schema.Literal("file"), mode: Schema.Int, size: Schema.Int, hash: Schema.String }),
  Schema.Struct({ type: Schema.Literal("symlink"), target: Schema.String }),
  Schema.Struct({ type: Schema.Literal("directory"), mode: Schema.Int }),
  /** Something that is not kept: too large, unreadable, a device. `why` in words. */
  Schema.Struct({ type: Schema.Literal("other"), why: Schema.String }),
)
export type Image = typeof Image.Type

export const absent: Image = { type: "absent" }

/** Absolute paths. */
export const PathChange = Schema.Struct({
  path: Schema.String,
  before: Image,
  after: Image,
  /** Number of the call, by its beginning in the checkpoint, that `before` is from. */
  since: Schema.optional(Schema.Int),
  /** Somebody else changed it between two changes of the checkpoint. */
  foreign: Schema.optional(Schema.Boolean),
})
export type PathChange = typeof PathChange.Type

/** A call that has begun and whose outcome is not written yet: enough to find out later what it changed. */
export const OpenCall = Schema.Struct({
  callId: Schema.String,
  tool: Schema.String,
  /** What was at the paths that it says it changes. */
  before: Schema.Array(Schema.Struct({ path: Schema.String, image: Image })),
  /** Hash of the list of everything that was in the workspace, for a call that may change anything. */
  manifest: Schema.NullOr(Schema.String),
  /** Which call of its checkpoint it is, from 1, and whether another one was open at the same time. */
  number: Schema.optional(Schema.Int),
  beside: Schema.optional(Schema.Boolean),
})
export type OpenCall = typeof OpenCall.Type

/** Document `pi.checkpoint`, one for each turn that changed something and for each undo; its key is its number. */
export const Checkpoint = Schema.Struct({
  id: Schema.Int,
  kind: Schema.Literal("turn", "undo"),
  /** Number of the run in its conversation, from 1; an undo has that of the last run. */
  run: Schema.Int,
  /** When it was made, ms since the epoch. */
  at: Schema.Int,
  /** The workspace. */
  root: Schema.String,
  /** Directory of the kept contents. */
  store: Schema.String,
  /** Names of the tools that changed something. */
  tools: Schema.Array(Schema.String),
  open: Schema.Array(OpenCall),
  /** Calls that have begun so far. */
  begun: Schema.optional(Schema.Int),
  changes: Schema.Array(PathChange),
  /** The undo that took it back, or null. */
  undoneBy: Schema.NullOr(Schema.Int),
  /** What an undo took back, oldest first; empty for a turn. */
  undoes: Schema.Array(Schema.Int),
})
export type Checkpoint = typeof Checkpoint.Type

export const checkpointDocument = defineDocument({
  kind: "pi.checkpoint",
  version: 1,
  schema: Checkpoint,
  scope: "conversation",
  family: true,
  initial: (): Checkpoint => ({
    id: 0,
    kind: "turn",
    run: 0,
    at: 0,
    root: "",
    store: "",
    tools: [],
    open: [],
    changes: [],
    undoneBy: null,
    undoes: [],
  }),
})

export const sameImage = (a: Image, b: Image): boolean => {
  switch (a.type) {
    case "absent":
      return b.type === "absent"
    case "file":
      return b.type === "file" && a.hash === b.hash && a.mode === b.mode
    case "symlink":
      return b.type === "symlink" && a.target === b.target
    case "directory":
      return b.type === "directory" && a.mode === b.mode
    case "other":
      return b.type === "other"
  }
}

/** Adds later changes to earlier ones (rule 2); a path that is as it was is left out. Sorted by path. */
export const addChanges = (
  earlier: ReadonlyArray<PathChange>,
  later: ReadonlyArray<PathChange>,
): ReadonlyArray<PathChange> => {
  const byPath = new Map(earlier.map((change) => [change.path, change]))
  for (const change of later) {
    const known = byPath.get(change.path)
    if (known === undefined) {
      byPath.set(change.path, change)
      continue
    }
    const foreign = known.foreign === true || change.foreign === true || !sameImage(known.after, change.before)
    byPath.set(change.path, {
      path: change.path,
      before: known.before,
      after: change.after,
      ...(known.since === undefined ? {} : { since: known.since }),
      ...(foreign ? { foreign } : {}),
    })
  }
  return [...byPath.values()]
    .filter(({ after, before, foreign }) => foreign === true || !sameImage(before, after))
    .sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
}

/** The same for a call that overlapped with others of its checkpoint. */
export const addOverlapping = (
  earlier: ReadonlyArray<PathChange>,
  later: ReadonlyArray<PathChange>,
): ReadonlyArray<PathChange> => {
  const known = new Map(earlier.map((change) => [change.path, change]))
  const merged = later.map((change) => {
    const other = known.get(change.path)
    if (other === undefined) return change
    const first = (other.since ?? 0) <= (change.since ?? 0) ? other : change
    // What it was in between may have been in the middle of the other call.
    return { ...other, before: first.before, after: change.after, since: first.since ?? 0 }
  })
  for (const { path } of merged) known.delete(path)
  return addChanges([], [...known.values(), ...merged])
}

/** Whether an undo may take it back. */
const standing = ({ changes, open, undoneBy }: Checkpoint): boolean =>
  undoneBy === null && (changes.length > 0 || open.length > 0)

/**
 * The checkpoints that an undo takes back, oldest first. Without `id`: those of the newest run that has any. With that of a turn: back to
 * before it, so it and every later turn that stands. With that of an undo: that one. Empty where there is nothing to take back.
 */
export const undoTargets = (all: ReadonlyArray<Checkpoint>, id: number | null): ReadonlyArray<Checkpoint> => {
  const sorted = all.filter(standing).sort((a, b) => a.id - b.id)
  if (id === null) {
    const last = sorted.findLast((one) => one.kind === "turn")
    return last === undefined ? [] : sorted.filter((one) => one.run >= last.run && isPartOfTurns(one))
  }
  const from = sorted.find((one) => one.id === id)
  if (from === undefined) return []
  return from.kind === "undo" ? [from] : sorted.filter((one) => one.id >= id && isPartOfTurns(one))
}

/** A turn, or an undo that was cut off: what it did counts, and took nothing back as a whole. */
const isPartOfTurns = ({ kind, undoes }: Checkpoint): boolean => kind === "turn" || undoes.length === 0

/** What checkpoints come to together, oldest first. */
export const changesOf = (checkpoints: ReadonlyArray<Checkpoint>): ReadonlyArray<PathChange> =>
  checkpoints.reduce<ReadonlyArray<PathChange>>((sum, { changes }) => addChanges(sum, changes), [])

/** Why a path cannot be taken back without `force`, or at all. */
export interface UndoConflict {
  readonly path: string
  readonly reason: string
  /** `force` would go over it. */
  readonly forcible: boolean
}

/** One step of an undo: what is at the path now, and what shall be. */
export interface UndoStep {
  readonly path: string
  readonly now: Image
  readonly to: Image
}

export const describeImage = (image: Image): string => {
  switch (image.type) {
    case "absent":
      return "nothing"
    case "file":
      return `a file of ${image.size} bytes, mode ${image.mode.toString(8)}`
    case "symlink":
      return `a link to ${image.target}`
    case "directory":
      return `a directory, mode ${image.mode.toString(8)}`
    case "other":
      return image.why
  }
}

/**
 * What an undo has to do, given what is at each path now. What is as it shall be needs no step; so an undo that was cut off goes on where
 * it was.
 */
export const planUndo = (
  changes: ReadonlyArray<PathChange>,
  current: (path: string) => Image,
  force: boolean,
): { readonly steps: ReadonlyArray<UndoStep>; readonly conflicts: ReadonlyArray<UndoConflict> } => {
  const steps: Array<UndoStep> = []
  const conflicts: Array<UndoConflict> = []
  for (const { after, before, foreign, path } of changes) {
    const now = current(path)
    if (before.type === "other") {
      const reason = `what was there before was not kept (${before.why})`
      conflicts.push({ path, reason, forcible: false })
    } else if (sameImage(now, before) && foreign !== true) {
    } else if (foreign === true && !force) {
      conflicts.push({ path, reason: "somebody else changed it between two changes of the agent", forcible: true })
    } else if (!sameImage(now, after) && !force) {
      const reason = `changed since: expected ${describeImage(after)}, got ${describeImage(now)}`
      conflicts.push({ path, reason, forcible: true })
    } else if (!sameImage(now, before)) steps.push({ path, now, to: before })
  }
  return { steps, conflicts }
}

/** One line of a listing. */
export const CheckpointView = Schema.Struct({
  id: Schema.Int,
  kind: Schema.Literal("turn", "undo"),
  run: Schema.Int,
  at: Schema.Int,
  root: Schema.String,
  tools: Schema.Array(Schema.String),
  /** A call of it is running, or was cut off. */
  open: Schema.Boolean,
  files: Schema.Int,
  /** The first of them. `kept` false: what was there before is not kept. */
  paths: Schema.Array(
    Schema.Struct({
      path: Schema.String,
      change: Schema.Literal("created", "changed", "deleted"),
      kept: Schema.Boolean,
    }),
  ),
  undone_by: Schema.NullOr(Schema.Int),
  undoes: Schema.Array(Schema.Int),
})
export type CheckpointView = typeof CheckpointView.Type

/** Paths that a view names. */
const pathsShown = 100

export const checkpointView = (checkpoint: Checkpoint): CheckpointView => ({
  id: checkpoint.id,
  kind: checkpoint.kind,
  run: checkpoint.run,
  at: checkpoint.at,
  root: checkpoint.root,
  tools: checkpoint.tools,
  open: checkpoint.open.length > 0,
  files: checkpoint.changes.length,
  paths: checkpoint.changes.slice(0, pathsShown).map(({ after, before, path }) => ({
    path,
    change: before.type === "absent" ? "created" : after.type === "absent" ? "deleted" : "changed",
    kept: before.type !== "other",
  })),
  undone_by: checkpoint.undoneBy,
  undoes: checkpoint.undoes,
})

/** What an undo did. */
export const UndoResult = Schema.Struct({
  /** Its own number: undoing it brings everything back. */
  id: Schema.Int,
  undone: Schema.Array(Schema.Int),
  restored: Schema.Array(Schema.String),
  /** What it left as it is, and why. */
  left: Schema.Array(Schema.Struct({ path: Schema.String, reason: Schema.String })),
})
export type UndoResult = typeof UndoResult.Type
