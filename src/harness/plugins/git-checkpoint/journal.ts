/**
 * The checkpoints of conversations as they are written: one for each turn, before its first mutation.
 *
 *   begin: look at what the call may change, keep it, commit it    → the call runs →    end: look again, commit what changed
 *
 * 1. Beginnings and ends of one conversation come one after another; the calls between them may run at once.
 * 2. A call whose process died in between stays open in its checkpoint. It is closed by whoever comes next, with what there is then.
 * 3. A checkpoint in which nothing changed goes as soon as none of its calls is open.
 */
import { Clock, Effect } from "effect"
import {
  addChanges,
  addOverlapping,
  type Checkpoint,
  checkpointDocument,
  type Image,
  type OpenCall,
  type PathChange,
  sameImage,
} from "../../../domain/checkpoint.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import { type DocumentReadError, makeDocuments } from "../../../storage/documents/documents.ts"
import type { InvalidDocument } from "../../../storage/documents/errors.ts"
import type { CommitError } from "../../../storage/errors.ts"
import type { StoreService } from "../../../storage/store.ts"
import { Blobs } from "./blobs.ts"
import { imageAt } from "./image.ts"
import { removeLeftovers } from "./leftovers.ts"
import { changesSince, type Manifest, type ScanOptions, scan } from "./scan.ts"
import { ScanState } from "./scan-state.ts"
import { missingParents } from "./walk.ts"

/** Why a checkpoint was not written. */
export type JournalError = DocumentReadError | CommitError | InvalidDocument | CheckpointFailed

export class CheckpointFailed extends Error {
  readonly _tag = "CheckpointFailed"
}

/** Checkpoints of one conversation that are kept; older ones are forgotten. */
const keptCheckpoints = 200

/** What a call may change: the paths that it names, or anything in the workspace. */
export type Reach = { readonly type: "paths"; readonly paths: ReadonlyArray<string> } | { readonly type: "workspace" }

export interface CallToWatch {
  readonly callId: string
  readonly tool: string
  readonly reach: Reach
}

/** The checkpoint of the turn that goes on. */
interface Turn {
  readonly id: number
  readonly run: number
}

type Options = Omit<ScanOptions, "blobs">

/** What a call in progress is ended with. */
export interface Watched {
  readonly end: Effect.Effect<void, JournalError>
  /** The workspace is too large to be watched, in words, or null. */
  readonly warning: string | null
}

const filesystem = <A>(run: () => Promise<A>): Effect.Effect<A, CheckpointFailed> =>
  Effect.tryPromise({
    try: run,
    catch: (cause) => new CheckpointFailed(cause instanceof Error ? cause.message : String(cause)),
  })

const imagesOf = (paths: ReadonlyArray<string>, blobs: Blobs | null) =>
  Effect.forEach(paths, (path) => filesystem(async () => ({ path, image: await imageAt(path, { blobs }) })))

/** What an open call changed, as far as it can be seen now. */
const outcomeOf = (call: OpenCall, options: ScanOptions): Effect.Effect<ReadonlyArray<PathChange>, CheckpointFailed> =>
  Effect.gen(function* () {
    const named = yield* imagesOf(
      call.before.map(({ path }) => path),
      null,
    )
    const changes = call.before.flatMap(({ image: before, path }, at): ReadonlyArray<PathChange> => {
      const after: Image = named[at]?.image ?? { type: "absent" }
      return sameImage(before, after) ? [] : [{ path, before, after }]
    })
    const { manifest } = call
    if (manifest === null) return changes
    const kept = yield* filesystem(() => options.blobs.read(manifest))
    // Written by this program, under the hash of its bytes.
    const parsed = JSON.parse(kept.toString("utf8")) as Manifest
    const found = yield* filesystem(() => changesSince(parsed, options))
    return [...changes, ...found]
  })

/** Renews the clocks of everything that a checkpoint needs. */
const renewAll = (changes: ReadonlyArray<PathChange>, blobs: Blobs) =>
  Effect.forEach(
    changes,
    ({ before }) => (before.type === "file" ? filesystem(() => blobs.renew(before.hash)) : Effect.succeed(true)),
    { concurrency: 8, discard: true },
  )

export class Journal {
  private readonly turns = new Map<ConversationId, Turn>()
  private readonly newRuns = new Set<ConversationId>()
  private readonly live = new Set<string>()
  private readonly locks = new Map<ConversationId, Effect.Semaphore>()
  private readonly scans = new ScanState()

  /** A run of the conversation begins. */
  runBegins(conversation: ConversationId): void {
    this.newRuns.add(conversation)
    this.turnEnds(conversation)
  }

  /** Its calls have all ended: the next mutation begins a checkpoint of its own. */
  turnEnds(conversation: ConversationId): void {
    this.turns.delete(conversation)
  }

  /** Keeps what a call may change and commits it. The call may begin when this has ended. */
  begin(
    store: StoreService,
    conversation: ConversationId,
    call: CallToWatch,
    directory: string,
    options: Options,
  ): Effect.Effect<Watched, JournalError> {
    const documents = makeDocuments(store)
    const blobs = new Blobs(directory)
    const scanning: ScanOptions = { ...options, blobs }
    const steps = Effect.gen(this, function* () {
      const now = yield* Clock.currentTimeMillis
      const { id, run } = this.turns.get(conversation) ?? (yield* this.newTurn(store, conversation, scanning))
      const watched = yield* this.look(call, scanning)
      yield* documents.update(checkpointDocument, { conversation, key: String(id) }, (value) => {
        if (value.id === 0) Object.assign(value, { id, run, at: now, root: options.root, store: directory })
        for (const other of value.open) other.beside = true
        const number = (value.begun ?? 0) + 1
        value.begun = number
        const beside = value.open.length > 0
        value.open.push({ ...watched.open, before: [...watched.open.before], number, beside })
      })
      this.newRuns.delete(conversation)
      this.turns.set(conversation, { id, run })
      this.live.add(liveKey(conversation, call.callId))
      return { id, open: watched.open, warning: watched.warning }
    })
    return Effect.map(this.serially(conversation, Effect.uninterruptible(steps)), ({ id, open, warning }) => ({
      warning,
      end: this.serially(conversation, this.finish(store, conversation, id, open, scanning)),
    }))
  }

  private finish(
    store: StoreService,
    conversation: ConversationId,
    id: number,
    open: OpenCall,
    options: ScanOptions,
  ): Effect.Effect<void, JournalError> {
    return Effect.gen(this, function* () {
      const documents = makeDocuments(store)
      const changes = yield* outcomeOf(open, options)
      yield* renewAll(changes, options.blobs)
      const target = { conversation, key: String(id) }
      const draft = yield* documents.draft(checkpointDocument, target)
      const closed = closeCall(draft.value, open.callId, changes)
      const empty = closed.changes.length === 0 && closed.open.length === 0
      if (empty) {
        yield* retireCheckpoint(store, conversation, id)
        if (this.turns.get(conversation)?.id === id) this.turns.delete(conversation)
      } else {
        yield* documents.update(checkpointDocument, target, (value) => {
          Object.assign(value, closeCall(value, open.callId, changes))
        })
      }
    }).pipe(Effect.ensuring(Effect.sync(() => this.live.delete(liveKey(conversation, open.callId)))))
  }

  private look(call: CallToWatch, options: ScanOptions) {
    const { callId, reach, tool } = call
    return Effect.gen(this, function* () {
      if (reach.type === "paths") {
        const parents = yield* filesystem(() => Promise.all(reach.paths.map(missingParents)))
        const paths = [...new Set([...parents.flat(), ...reach.paths])]
        const before = yield* imagesOf(paths, options.blobs)
        const open: OpenCall = { callId, tool, before, manifest: null }
        return { open, warning: null }
      }
      const now = yield* Clock.currentTimeMillis
      const found = yield* filesystem(() => this.scans.with(options.root, (memory) => scan(options, memory, now)))
      const manifest =
        found === null
          ? null
          : yield* filesystem(() => options.blobs.put(new TextEncoder().encode(JSON.stringify(found))))
      const open: OpenCall = { callId, tool, before: [], manifest }
      const tooLarge = `${options.root} holds more than ${options.limits.maxEntries} files: what commands change there cannot be undone`
      return { open, warning: found === null ? tooLarge : null }
    })
  }

  /** Numbers of a new turn. What a process left open that died is closed, and the oldest are forgotten. */
  private newTurn(store: StoreService, conversation: ConversationId, options: ScanOptions) {
    return Effect.gen(this, function* () {
      const all = yield* closeDead(store, conversation, options, (callId) =>
        this.live.has(liveKey(conversation, callId)),
      )
      const oldest = [...all].sort((a, b) => a.id - b.id)
      for (const { id } of oldest.slice(0, Math.max(0, all.length - keptCheckpoints + 1))) {
        yield* retireCheckpoint(store, conversation, id)
      }
      const run = Math.max(0, ...all.map((one) => one.run)) + (this.newRuns.has(conversation) ? 1 : 0)
      const turn: Turn = { id: Math.max(0, ...all.map((one) => one.id)) + 1, run: Math.max(1, run) }
      return turn
    })
  }

  private serially<A, E>(conversation: ConversationId, effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    const lock = this.locks.get(conversation) ?? Effect.unsafeMakeSemaphore(1)
    this.locks.set(conversation, lock)
    return lock.withPermits(1)(effect)
  }
}

const liveKey = (conversation: ConversationId, callId: string): string => `${conversation}:${callId}`

/** The checkpoint with a call of it closed. */
export const closeCall = (
  checkpoint: Checkpoint,
  callId: string,
  changes: ReadonlyArray<PathChange>,
): Pick<Checkpoint, "changes" | "open" | "tools"> => {
  const call = checkpoint.open.find((open) => open.callId === callId)
  const tools = call === undefined || changes.length === 0 ? [] : [call.tool]
  const numbered = changes.map((change) => ({ ...change, since: call?.number ?? 0 }))
  const add = call?.beside === true ? addOverlapping : addChanges
  return {
    open: checkpoint.open.filter((open) => open.callId !== callId),
    changes: add(checkpoint.changes, numbered),
    tools: [...new Set([...checkpoint.tools, ...tools])],
  }
}

/** Closes the calls that no process runs any more; gives every checkpoint of the conversation. */
export const closeDead = (
  store: StoreService,
  conversation: ConversationId,
  options: Pick<ScanOptions, "own" | "skip" | "limits">,
  isLive: (callId: string) => boolean,
): Effect.Effect<ReadonlyArray<Checkpoint>, JournalError> =>
  Effect.gen(function* () {
    const documents = makeDocuments(store)
    const all = yield* documents.family(checkpointDocument, { conversation })
    return yield* Effect.forEach(all, ({ key, value }) =>
      Effect.gen(function* () {
        const dead = value.open.filter(({ callId }) => !isLive(callId))
        if (dead.length === 0) return value
        const scanning: ScanOptions = { ...options, root: value.root, blobs: new Blobs(value.store) }
        const touched = dead.flatMap(({ before }) => before.map(({ path }) => path))
        yield* filesystem(() => removeLeftovers(touched))
        const outcomes = yield* Effect.forEach(dead, (call) =>
          // What was kept is gone: nothing is known, and so nothing is undone.
          Effect.catchAll(outcomeOf(call, scanning), () => Effect.succeed<ReadonlyArray<PathChange>>([])),
        )
        return yield* documents.update(checkpointDocument, { conversation, key }, (draft) => {
          dead.forEach((call, at) => {
            Object.assign(draft, closeCall(draft, call.callId, outcomes[at] ?? []))
          })
        })
      }),
    )
  })

/** Ends a checkpoint's document. */
const retireCheckpoint = (store: StoreService, conversation: ConversationId, id: number) =>
  Effect.gen(function* () {
    const documents = makeDocuments(store)
    const draft = yield* documents.draft(checkpointDocument, { conversation, key: String(id) })
    const write = yield* documents.write(checkpointDocument, draft.retire())
    if (write !== null) yield* store.commit({ documents: [write] })
  })
