/**
 * File locks as an actor. The actor alone decides who holds what (the lock table); a holder is a fiber anywhere in the process.
 *
 * 1. A grant is recorded in `held`, which outlives a crash of the actor: the next incarnation starts from it, so nobody loses a lock
 *    that it holds. Requests that waited fail with ActorDown and are made again.
 * 2. A holder that ends, in whatever way, first takes itself out of `held`, then tells the actor; so a crash in between frees the lock.
 * 3. `request` and `release` of one id come from one fiber, in this order.
 */
import { Effect, Layer, Schedule } from "effect"
import { FileLocks, type FileLocksService, locksOver } from "../tools/file-lock.ts"
import { LockTable } from "../tools/lock-table.ts"
import {
  type ActorDown,
  type ActorRef,
  ActorSystem,
  ask,
  type Behavior,
  behavior,
  type NameTaken,
  type ReplyTo,
  type SpawnError,
  spawn,
  tell,
} from "./kernel/index.ts"

/** What the actor understands. Ids are unique per request. */
export type FileLockMessage =
  | {
      readonly type: "request"
      readonly id: number
      readonly paths: ReadonlyArray<string>
      readonly reply: ReplyTo<void>
    }
  | { readonly type: "release"; readonly id: number }

interface State {
  readonly table: LockTable
  readonly waiting: Map<number, { readonly paths: ReadonlyArray<string>; readonly reply: ReplyTo<void> }>
}

type Held = Map<number, ReadonlyArray<string>>

/** The actor; `held` are the grants that outlive it (rule 1). */
const fileLockActor = (held: Held): Behavior<State, FileLockMessage> =>
  behavior({
    name: "file-locks",
    capacity: 10_000,
    init: () => {
      const table = new LockTable()
      for (const [id, paths] of held) table.request(id, paths)
      return { table, waiting: new Map() }
    },
    receive: (state, message) =>
      Effect.sync(() => {
        const { table, waiting } = state
        if (message.type === "request") {
          const { id, paths, reply } = message
          // Asked again after a crash of this actor, when the first request was granted or still waits.
          const granted = held.has(id) || (!waiting.has(id) && table.request(id, paths))
          if (granted) {
            held.set(id, paths)
            reply.succeed(undefined)
          } else waiting.set(id, { paths, reply })
          return state
        }
        held.delete(message.id)
        waiting.delete(message.id)
        for (const id of table.release(message.id)) {
          const waiter = waiting.get(id)
          waiting.delete(id)
          if (waiter === undefined) continue
          held.set(id, waiter.paths)
          waiter.reply.succeed(undefined)
        }
        return state
      }),
    describe: ({ table }) => `${table.size.held} held, ${table.size.waiting} waiting`,
  })

/** While the actor restarts; after that locks are a fault of ours. */
const restarting = Schedule.intersect(Schedule.exponential("10 millis"), Schedule.recurs(8))

const serviceOf = (ref: ActorRef<FileLockMessage>, held: Held): FileLocksService => {
  const request = (id: number, paths: ReadonlyArray<string>) =>
    ask<FileLockMessage, void>(ref, (reply) => ({ type: "request", id, paths, reply }), {
      timeoutMs: Number.POSITIVE_INFINITY,
    }).pipe(
      Effect.retry({ schedule: restarting, while: (error): error is ActorDown => error._tag === "ActorDown" }),
      Effect.orDie,
    )
  const release = (id: number) =>
    Effect.suspend(() => {
      held.delete(id)
      return tell(ref, { type: "release", id })
    })
  return locksOver(request, release)
}

/** Registry name of the node's file lock actor. */
const fileLocksName = "file-locks"

/** {@link FileLocks} served by an actor of the node, below `parent` or the system's guardian, registered as `file-locks`. */
export const fileLockLayer = (options?: {
  readonly parent?: ActorRef<never>
}): Layer.Layer<FileLocks, SpawnError | NameTaken, ActorSystem> =>
  Layer.effect(
    FileLocks,
    Effect.gen(function* () {
      const held: Held = new Map()
      const ref = yield* spawn(fileLockActor(held), {
        ...options,
        name: fileLocksName,
        childSpec: { restart: "permanent" },
      })
      yield* (yield* ActorSystem).registry.register(fileLocksName, ref)
      return serviceOf(ref, held)
    }),
  )
