/**
 * The runtime of one run of one phase: collects what the phase spawns until its step is committed.
 */
import { Effect, Either } from "effect"
import { DocumentKind } from "../../domain/document.ts"
import { ConversationId, type TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import { uuidDraws, uuidv7 } from "../../domain/uuid.ts"
import { builtinWrite } from "../../storage/documents/builtin.ts"
import type { StoreService } from "../../storage/store.ts"
import { sleepLong } from "../kernel/timers.ts"
import type { TaskRow } from "./board.ts"
import { codec } from "./codec.ts"
import type { Outcome, TaskDefinition } from "./define.ts"
import type { TaskMemory } from "./memory.ts"
import { freshRow } from "./rows.ts"
import type { TaskRuntime } from "./runtime.ts"
import type { SleepTime } from "./step.ts"
import { untilStored } from "./stored.ts"

export class PhaseRuntime implements TaskRuntime {
  /** Rows of the children that the phase spawned, oldest first. */
  readonly spawned: Array<TaskRow> = []
  private readonly row: TaskRow
  private readonly store: StoreService
  private readonly memory: TaskMemory

  constructor(row: TaskRow, store: StoreService, memory: TaskMemory) {
    this.row = row
    this.store = store
    this.memory = memory
  }

  readonly memo: TaskRuntime["memo"] = (key, effect, schema) => {
    const { decode, encode } = codec(`memo ${key}`, schema)
    const encoded = Effect.flatMap(effect, (value) => orDie(encode(value)))
    return Effect.flatMap(this.memory.once(key, encoded), (stored) => orDie(decode(stored)))
  }

  readonly idempotencyKey: TaskRuntime["idempotencyKey"] = (name) => this.memory.idempotencyKey(name)

  readonly sleep = (key: string, time: SleepTime): Effect.Effect<void> =>
    Effect.clockWith((clock) => {
      const now = () => clock.unsafeCurrentTimeMillis()
      const until = Effect.sync(() => Math.ceil("until" in time ? time.until : now() + time.ms))
      return Effect.flatMap(this.memory.once(`sleep ${key}`, until), (at) => sleepLong(Math.max(0, Number(at) - now())))
    })

  readonly spawn: TaskRuntime["spawn"] = (definition, input, options) =>
    Effect.gen(this, function* () {
      const stored = yield* orDie(definition.begin(input))
      const ids = yield* untilStored(this.store.mint("task", 1)).pipe(Effect.orDie)
      const now = (yield* Effect.clock).unsafeCurrentTimeMillis()
      const { conversation, id: owner } = this.row
      const base = { kind: definition.kind, ...stored, conversation, owner, background: options?.background ?? false }
      const [id] = ids
      if (id === undefined) return yield* Effect.dieMessage("the store minted no task id")
      this.spawned.push(freshRow({ ...base, id, fence: this.row.fence, requestId: null, createdAt: now }))
      return id
    })

  readonly conversation: TaskRuntime["conversation"] = (key, options = {}) => {
    const draft = Effect.gen(this, function* () {
      const now = (yield* Effect.clock).unsafeCurrentTimeMillis()
      const random = yield* Effect.random
      const digits = yield* Effect.replicateEffect(random.next, uuidDraws)
      const [id] = yield* untilStored(this.store.mint("conversation", 1)).pipe(Effect.orDie)
      const [agentId, providerId] = yield* untilStored(this.store.mint("document", 2)).pipe(Effect.orDie)
      if (id === undefined || agentId === undefined || providerId === undefined) {
        return yield* Effect.dieMessage("the store minted fewer ids than asked for")
      }
      const owned = { id, parent: null, owner: this.row.id, principal: "local", title: options.title ?? null }
      const sessionId = uuidv7(now, () => digits.pop() ?? 0)
      return {
        value: id,
        commit: {
          conversations: [{ ...owned, createdAt: now, updatedAt: now }],
          documents: [
            builtinWrite(DocumentKind.agent, agentId, id, { ...options.agent } as Json),
            builtinWrite(DocumentKind.provider, providerId, id, { sessionId }),
          ],
        },
      }
    })
    return Effect.map(this.memory.onceWith(`conversation ${key}`, draft), (id) => ConversationId.make(Number(id)))
  }

  readonly outcomes: TaskRuntime["outcomes"] = (ids) =>
    Effect.forEach(ids, (id) =>
      Effect.map(untilStored(this.store.task(id)), (task) => (task?.status === "terminal" ? task.outcome : null)),
    )

  readonly outcomesOf = <Input, A, E>(
    definition: TaskDefinition<Input, A, E, unknown>,
    ids: ReadonlyArray<TaskId>,
  ): Effect.Effect<ReadonlyArray<Outcome<A, E>>> =>
    Effect.flatMap(this.outcomes(ids), (outcomes) =>
      Effect.forEach(outcomes, (outcome, at) =>
        outcome === null
          ? Effect.dieMessage(`outcomesOf: expected tasks that have ended, got ${ids[at]}, which has not`)
          : orDie(definition.outcome(outcome)),
      ),
    )
}

const orDie = <A>(either: Either.Either<A, string>): Effect.Effect<A> =>
  Either.match(either, { onLeft: (message) => Effect.dieMessage(message), onRight: (value) => Effect.succeed(value) })
