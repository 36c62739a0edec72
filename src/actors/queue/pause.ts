/**
 * Which queues are paused: a global document `pi.queue` for each that ever was, so that a pause outlives the node.
 */
import { Effect } from "effect"
import { isRecord } from "../../domain/json.ts"
import type { CommitError, ReadError } from "../../storage/errors.ts"
import type { StoreReads, StoreService } from "../../storage/store.ts"

const kind = "pi.queue"

export const isPaused = (reads: StoreReads, queue: string): Effect.Effect<boolean, ReadError> =>
  Effect.map(
    reads.globalDocument(kind, queue),
    (document) => document !== null && isRecord(document.value) && document.value.paused === true,
  )

/** Commits that a queue is paused or not; nothing where it is so already. */
export const setPaused = (
  store: StoreService,
  queue: string,
  paused: boolean,
): Effect.Effect<void, CommitError | ReadError> =>
  // Another node may make the document in the same moment; then there is one to change.
  Effect.retry(write(store, queue, paused), { times: 1, while: (error) => error._tag === "Conflict" })

const write = (store: StoreService, queue: string, paused: boolean): Effect.Effect<void, CommitError | ReadError> =>
  Effect.gen(function* () {
    if ((yield* isPaused(store, queue)) === paused) return
    const before = yield* store.globalDocument(kind, queue)
    const [fresh] = before === null ? yield* store.mint("document", 1) : []
    const id = before?.id ?? fresh
    if (id === undefined) return yield* Effect.dieMessage("the store minted fewer ids than asked for")
    yield* store.commit({
      documents: [
        {
          id,
          kind,
          scope: "global",
          conversation: null,
          task: null,
          key: queue,
          version: 1,
          history: "latest",
          fork: "initial",
          value: { paused },
        },
      ],
    })
  })
