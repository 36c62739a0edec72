/**
 * What a task remembers beside its checkpoint, as documents of scope `task`: the results of its memos, and the secret of its idempotency keys.
 * A value is written once and never changed.
 */
import { Effect } from "effect"
import type { DocumentId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { uuidDraws, uuidv7 } from "../../domain/uuid.ts"
import type { Commit, StoreService } from "../../storage/store.ts"
import type { TaskRow } from "./board.ts"
import { untilStored } from "./stored.ts"

/** Kinds of the documents. */
const memoKind = "pi.memo"
const keyKind = "pi.idempotency"

export class TaskMemory {
  private readonly store: StoreService
  private readonly row: Pick<TaskRow, "id" | "conversation">
  /** One at a time for each key, so that two fibers of a phase do not run one memo twice. */
  private readonly turns = new Map<string, Effect.Semaphore>()
  private secret: string | null = null

  constructor(store: StoreService, row: Pick<TaskRow, "id" | "conversation">) {
    this.store = store
    this.row = row
  }

  /** The value under `key`; where there is none, that of `make`, once it is committed. What was made is always committed. */
  once<E, R>(key: string, make: Effect.Effect<Json, E, R>): Effect.Effect<Json, E, R> {
    const known = this.turns.get(key)
    const turn = known ?? Effect.unsafeMakeSemaphore(1)
    if (known === undefined) this.turns.set(key, turn)
    const write = Effect.uninterruptibleMask((restore) =>
      Effect.flatMap(restore(make), (value) => this.write(memoKind, key, { value })),
    )
    const found = Effect.flatMap(this.read(memoKind, key), (value) =>
      value === null ? Effect.zipRight(write, this.read(memoKind, key)) : Effect.succeed(value),
    )
    return turn.withPermits(1)(Effect.map(found, (stored) => field(stored, "value")))
  }

  /** The value under `key`; where there is none, that of `draft`, which is written in one commit with its rows. */
  onceWith(key: string, draft: Effect.Effect<{ readonly value: Json; readonly commit: Commit }>): Effect.Effect<Json> {
    const write = Effect.flatMap(draft, ({ commit, value }) => this.write(memoKind, key, { value }, commit))
    return Effect.flatMap(this.read(memoKind, key), (known) =>
      Effect.map(known === null ? Effect.zipRight(write, this.read(memoKind, key)) : Effect.succeed(known), (stored) =>
        field(stored, "value"),
      ),
    )
  }

  idempotencyKey(name: string): Effect.Effect<string> {
    if (this.secret !== null) return Effect.succeed(`${this.secret}:${name}`)
    const draw = Effect.gen(this, function* () {
      const now = (yield* Effect.clock).unsafeCurrentTimeMillis()
      const random = yield* Effect.random
      const digits = yield* Effect.replicateEffect(random.next, uuidDraws)
      yield* this.write(keyKind, "", { secret: uuidv7(now, () => digits.pop() ?? 0) })
      return yield* this.read(keyKind, "")
    })
    const found = Effect.flatMap(this.read(keyKind, ""), (value) => (value === null ? draw : Effect.succeed(value)))
    return Effect.map(found, (stored) => {
      this.secret = String(field(stored, "secret"))
      return `${this.secret}:${name}`
    })
  }

  private read(kind: string, key: string): Effect.Effect<Json | null> {
    const find = this.store.findDocument({ scope: "task", conversation: null, task: this.row.id, kind, key })
    return Effect.map(untilStored(find), (record) => record?.value ?? null)
  }

  /** A value that somebody else wrote first stays. */
  private write(kind: string, key: string, value: Json, commit: Commit = {}): Effect.Effect<void> {
    const { conversation, id: task } = this.row
    const attempt = Effect.flatMap(this.store.mint("document", 1), (ids) =>
      this.store.commit({
        ...commit,
        documents: [
          ...(commit.documents ?? []),
          ...ids.map((id: DocumentId) => ({
            ...{ id, kind, scope: "task" as const, conversation, task, key, version: 1 },
            ...{ history: "latest" as const, fork: "initial" as const, value },
          })),
        ],
      }),
    )
    return untilStored(attempt).pipe(
      Effect.catchTags({ Conflict: () => Effect.void, Fenced: (error) => Effect.die(error) }),
      Effect.asVoid,
    )
  }
}

const field = (stored: Json | null, name: string): Json =>
  typeof stored === "object" && stored !== null && name in stored
    ? ((stored as { readonly [key: string]: Json })[name] ?? null)
    : null
