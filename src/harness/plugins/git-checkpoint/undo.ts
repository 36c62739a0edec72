/**
 * Undo: takes checkpoints back as a whole, or refuses and says which paths stand in the way.
 *
 *   look at every path and keep what is there → plan → commit the intent (a checkpoint of kind `undo` with an open call) → restore
 *     → commit the outcome: what changed, and which checkpoints are undone
 *
 * Cut off at any place, the next undo does the rest: what is restored already needs no step, and what is there was kept first.
 */
import { Clock, Effect } from "effect"
import {
  type Checkpoint,
  type CheckpointView,
  changesOf,
  checkpointDocument,
  checkpointView,
  type Image,
  type OpenCall,
  type PathChange,
  planUndo,
  sameImage,
  type UndoConflict,
  type UndoResult,
  type UndoStep,
  undoTargets,
} from "../../../domain/checkpoint.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import { makeDocuments } from "../../../storage/documents/documents.ts"
import type { DocumentWrite, StoreService } from "../../../storage/store.ts"
import { Blobs } from "./blobs.ts"
import { imageAt } from "./image.ts"
import { CheckpointFailed, closeCall, closeDead, type JournalError } from "./journal.ts"
import { type RestoreFault, restore } from "./restore.ts"
import { defaultLimits, ownPaths, skipOf } from "./scope.ts"

/** There is no such checkpoint, or nothing to take back. */
export class NothingToUndo extends Error {
  readonly _tag = "NothingToUndo"
}

/** Paths stand in the way; nothing was changed. */
export class UndoRefused extends Error {
  readonly _tag = "UndoRefused"
  readonly conflicts: ReadonlyArray<UndoConflict>
  constructor(conflicts: ReadonlyArray<UndoConflict>) {
    super(refusal(conflicts))
    this.conflicts = conflicts
  }
}

/** Conflicts that a message names. */
const conflictsNamed = 10

const refusal = (conflicts: ReadonlyArray<UndoConflict>): string => {
  const named = conflicts.slice(0, conflictsNamed).map(({ path, reason }) => `${path}: ${reason}`)
  const more = conflicts.length > conflictsNamed ? [`and ${conflicts.length - conflictsNamed} more`] : []
  const forced = conflicts.some(({ forcible }) => forcible)
    ? "--force goes over these changes; they can be brought back by undoing the undo"
    : "--force restores everything else"
  return [...named, ...more, `nothing was changed; ${forced}`].join("; ")
}

export type UndoError = JournalError | NothingToUndo | UndoRefused

const filesystem = <A>(run: () => Promise<A>): Effect.Effect<A, CheckpointFailed> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new CheckpointFailed(cause instanceof Error ? cause.message : String(cause)),
  })

/** The checkpoints of a conversation that no call works on; what a dead process left open is closed. */
const settled = (store: StoreService, conversation: ConversationId) =>
  closeDead(
    store,
    conversation,
    { own: ownPaths(store.location, null), skip: skipOf([]), limits: defaultLimits },
    () => false,
  )

/** What there is, newest first. Reads only. */
export const listCheckpoints = (
  store: StoreService,
  conversation: ConversationId,
): Effect.Effect<ReadonlyArray<CheckpointView>, JournalError> =>
  Effect.map(makeDocuments(store).family(checkpointDocument, { conversation }), (all) =>
    all
      .map(({ value }) => checkpointView(value))
      .filter(({ files, open }) => files > 0 || open)
      .sort((a, b) => b.id - a.id),
  )

export interface UndoRequest {
  /** A checkpoint's number; null takes the newest run back. */
  readonly id: number | null
  /** Goes over what somebody else changed since. */
  readonly force: boolean
}

/** Takes checkpoints back. The conversation must be idle. */
export const undo = (
  store: StoreService,
  conversation: ConversationId,
  { force, id }: UndoRequest,
): Effect.Effect<UndoResult, UndoError> =>
  Effect.gen(function* () {
    const all = yield* settled(store, conversation)
    const targets = undoTargets(all, id)
    const newest = targets.at(-1)
    if (newest === undefined) return yield* Effect.fail(new NothingToUndo(nothing(all, id)))
    const blobs = new Blobs(newest.store)
    const { left, steps } = yield* planned(changesOf(targets), blobs, force)
    const number = Math.max(...all.map((one) => one.id)) + 1
    const run = Math.max(...all.map((one) => one.run))
    const open: OpenCall = {
      callId: "undo",
      tool: "undo",
      before: steps.map(({ now, path }) => ({ path, image: now })),
      manifest: null,
    }
    const at = yield* Clock.currentTimeMillis
    const { root, store: directory } = newest
    yield* makeDocuments(store).update(checkpointDocument, { conversation, key: String(number) }, (value) => {
      Object.assign(value, { id: number, kind: "undo", run, at, root, store: directory, open: [open] })
    })
    const faults = yield* Effect.uninterruptible(filesystem(() => restore(steps, blobs)))
    yield* settle(store, conversation, { number, targets, steps, faults })
    const failed = new Set(faults.map(({ path }) => path))
    return {
      id: number,
      undone: faults.every(({ minor }) => minor) ? targets.map((one) => one.id) : [],
      restored: steps.map(({ path }) => path).filter((path) => !failed.has(path)),
      left: [...left, ...faults].map(({ path, reason }) => ({ path, reason })),
    }
  })

const nothing = (all: ReadonlyArray<Checkpoint>, id: number | null): string => {
  if (id === null) return "no checkpoint is left to undo"
  const one = all.find((other) => other.id === id)
  if (one === undefined) return `there is no checkpoint ${id}; super-pi undo --list shows them`
  return one.undoneBy === null
    ? `checkpoint ${id} changed nothing`
    : `checkpoint ${id} is undone already; undo ${one.undoneBy} to bring it back`
}

/** The steps, with everything kept that they replace and everything there that they put. */
const planned = (changes: ReadonlyArray<PathChange>, blobs: Blobs, force: boolean) =>
  Effect.gen(function* () {
    const found = yield* Effect.forEach(
      changes,
      ({ path }) => filesystem(async () => [path, await imageAt(path, { blobs })] as const),
      { concurrency: 8 },
    )
    const current = new Map<string, Image>(found)
    const { conflicts, steps } = planUndo(changes, (path) => current.get(path) ?? { type: "absent" }, force)
    const left: Array<UndoConflict> = [...conflicts]
    const ready: Array<UndoStep> = []
    for (const step of steps) {
      const { path, to } = step
      const kept = to.type !== "file" || (yield* filesystem(() => blobs.renew(to.hash)))
      if (kept) ready.push(step)
      else left.push({ path, reason: "what was there before is no longer kept", forcible: false })
    }
    if (left.length > 0 && !force) return yield* Effect.fail(new UndoRefused(left))
    return { steps: ready, left }
  })

/** The outcome: what the undo changed, and, where all of it was done, which checkpoints are undone and which stand again. */
const settle = (
  store: StoreService,
  conversation: ConversationId,
  done: {
    readonly number: number
    readonly targets: ReadonlyArray<Checkpoint>
    readonly steps: ReadonlyArray<UndoStep>
    readonly faults: ReadonlyArray<RestoreFault>
  },
): Effect.Effect<void, JournalError> =>
  Effect.gen(function* () {
    const documents = makeDocuments(store)
    const { faults, number, steps, targets } = done
    const failed = new Set(faults.map(({ path }) => path))
    const changes = steps
      .filter(({ path }) => !failed.has(path))
      .map(({ now, path, to }): PathChange => ({ path, before: now, after: to }))
      .filter(({ after, before }) => !sameImage(before, after))
    const whole = faults.every(({ minor }) => minor)
    const again = new Set(whole ? targets.flatMap(({ undoes }) => undoes) : [])
    const undone = new Set(whole ? targets.map(({ id }) => id) : [])
    const edits: ReadonlyArray<readonly [id: number, change: (value: Checkpoint) => Partial<Checkpoint>]> = [
      [number, (value) => ({ ...closeCall(value, "undo", changes), undoes: [...undone] })],
      ...[...undone].map((id) => [id, () => ({ undoneBy: number })] as const),
      ...[...again].map((id) => [id, () => ({ undoneBy: null })] as const),
    ]
    const writes: Array<DocumentWrite> = []
    for (const [id, change] of edits) {
      const draft = yield* documents.draft(checkpointDocument, { conversation, key: String(id) })
      if (draft.value.id === 0) continue
      const write = yield* documents.write(
        checkpointDocument,
        draft.replace({ ...draft.value, ...change(draft.value) }),
      )
      if (write !== null) writes.push(write)
    }
    yield* store.commit({ documents: writes })
  })
