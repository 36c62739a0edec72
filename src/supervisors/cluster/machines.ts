/**
 * The conversations of a node in a cluster: started only at places whose shard is held, started by themselves where they have open work,
 * stopped cleanly before their shard goes. Rules:
 * 1. Whoever asks for a conversation of another place is told `moved`.
 * 2. A shard that leaves waits for what works in it, up to the grace; what only waits (idle, a backoff, subagents) is stopped at once, and what
 *    still works then is stopped too: it goes on elsewhere from what is committed.
 * 3. Open work of shards that came goes on without being asked for; what could not start, or ended again with work open, is tried at the next
 *    look, and more and more rarely as long as it is never found at work.
 */
import { Duration, Effect, Option, Schedule, type Scope } from "effect"
import { orStorageFailure } from "../../actors/conversation/failures.ts"
import type { ConversationMessage } from "../../actors/conversation/messages.ts"
import { ask, shutdown, stop } from "../../actors/kernel/index.ts"
import { shardOf } from "../../domain/cluster.ts"
import type { Failure } from "../../domain/failure.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { isMoved, moved } from "../../domain/moved.ts"
import type { ClusterStoreService } from "../../storage/cluster-port.ts"
import type { ConversationRef, Conversations } from "../conversations.ts"
import type { Shards } from "./shards.ts"

/** Between two looks at a conversation that is waited for, in ms. */
const lookMs = 50
/** Within which a conversation that stops releases its tasks, in ms. */
const stopMs = 5_000
/** Between two searches for open work that is not at work. */
const sweepEvery = Duration.seconds(5)
/** Before a conversation that did not start, or ended again, is tried once more: the first time, and at most, in ms. */
const againMs = [2_500, 30_000] as const
/** One that does not start, for example because the database is away, is tried again a few times first. */
const startAgain = Schedule.intersect(Schedule.exponential(Duration.millis(100)), Schedule.recurs(5))
/** Conversations started at once. */
const startsAtOnce = 8

export interface Machines extends Conversations {
  /** Conversations in memory. */
  readonly count: Effect.Effect<number>
  /** When it was last looked whether open work is at work, by the monotonic clock, in ms. */
  readonly sweptAt: () => number
  /** Lets open work begin, until the scope closes. */
  readonly begin: Effect.Effect<void, never, Scope.Scope>
}

export interface MachinesParts {
  readonly plain: Conversations
  readonly shards: Shards
  readonly store: ClusterStoreService
  /** By a monotonic clock, in ms. */
  readonly now: () => number
}

export const makeMachines = ({ now, plain, shards, store }: MachinesParts): Machines => {
  /** Those that were started here with their places, as far as they may still be in memory. */
  const started = new Map<ConversationId, number>()
  /** When conversations with open work were last tried, and how long they are left alone from then on. */
  const tried = new Map<ConversationId, { readonly at: number; readonly waitMs: number }>()
  let sweptAt = now()

  const elsewhere = (id: ConversationId): Effect.Effect<never, Failure> => Effect.fail(moved(`conversation ${id}`))

  const halt = (ref: ConversationRef): Effect.Effect<void> => stop(ref, shutdown, { shutdownMs: stopMs })

  const get: Conversations["get"] = (id) =>
    Effect.flatMap(orStorageFailure(store.placeOfConversation(id)), (place) => {
      if (place === null) return plain.get(id)
      if (!shards.holds(place)) {
        if (!shards.has(shardOf(place))) return elsewhere(id)
        return Effect.flatMap(plain.peek(id), Option.match({ onNone: () => elsewhere(id), onSome: Effect.succeed }))
      }
      started.set(id, place)
      return Effect.flatMap(plain.get(id), (ref) =>
        shards.has(shardOf(place)) ? Effect.succeed(ref) : Effect.zipRight(halt(ref), elsewhere(id)),
      )
    })

  /** Those in memory at these shards, with their actors. */
  const at = (wanted: ReadonlySet<number>): Effect.Effect<ReadonlyArray<readonly [ConversationId, ConversationRef]>> =>
    Effect.gen(function* () {
      const found: Array<readonly [ConversationId, ConversationRef]> = []
      for (const [id, place] of [...started]) {
        if (!wanted.has(shardOf(place))) continue
        const ref = yield* plain.peek(id)
        if (Option.isSome(ref)) found.push([id, ref.value])
      }
      return found
    })

  /** Lets it go where it only waits; one that does not answer in time works. In one step, so that nothing begins in between. */
  const movedOut = (ref: ConversationRef): Effect.Effect<boolean> =>
    ask<ConversationMessage, boolean, Failure>(ref, (reply) => ({ type: "moveOut", reply }), { timeoutMs: 1_000 }).pipe(
      Effect.catchAll((error) => Effect.succeed(error._tag === "ActorDown")),
    )

  const leaveOne = (id: ConversationId, ref: ConversationRef, until: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      while (!(yield* movedOut(ref)) && now() < until) yield* Effect.sleep(lookMs)
      yield* halt(ref)
      started.delete(id)
    })

  const leaving = (gone: ReadonlyArray<number>, graceMs: number): Effect.Effect<void> => {
    const wanted = new Set(gone)
    const until = now() + graceMs
    const round: Effect.Effect<void> = Effect.flatMap(at(wanted), (here) =>
      here.length === 0
        ? Effect.void
        : Effect.zipRight(
            Effect.forEach(here, ([id, ref]) => leaveOne(id, ref, until), { concurrency: "unbounded", discard: true }),
            // one that was just starting
            round,
          ),
    )
    return round
  }

  const start = (id: ConversationId): Effect.Effect<void> => {
    const waitMs = Math.min(againMs[1], 2 * (tried.get(id)?.waitMs ?? againMs[0] / 2))
    tried.set(id, { at: now(), waitMs })
    return get(id).pipe(
      Effect.retry({ schedule: startAgain, while: (failure) => !isMoved(failure) }),
      Effect.catchAll((failure) =>
        isMoved(failure) ? Effect.void : Effect.logError(`conversation ${id} was not resumed: ${failure.message}`),
      ),
      Effect.asVoid,
    )
  }

  const recover = (wanted: ReadonlyArray<number>): Effect.Effect<void> =>
    Effect.flatMap(store.busyConversations(wanted), (busy) =>
      Effect.forEach(busy, start, { concurrency: startsAtOnce, discard: true }),
    ).pipe(Effect.catchAll((error) => Effect.logWarning(`open work was not found yet: ${error.message}`)))

  /** Open work that nobody is at: what failed to start, or ended without being done. */
  const sweep: Effect.Effect<void> = Effect.gen(function* () {
    for (const id of [...started.keys()]) {
      if (Option.isNone(yield* plain.peek(id))) started.delete(id)
    }
    const held = shards.held()
    if (held.length === 0) {
      sweptAt = now()
      return
    }
    const busy = yield* store.busyConversations(held)
    for (const id of busy) {
      const last = tried.get(id)
      if (Option.isSome(yield* plain.peek(id))) tried.delete(id)
      else if (last === undefined || now() - last.at >= last.waitMs) yield* start(id)
    }
    const open = new Set(busy)
    for (const [id, { at, waitMs }] of tried) if (!open.has(id) && now() - at >= waitMs) tried.delete(id)
    sweptAt = now()
  }).pipe(Effect.catchAll((error) => Effect.logWarning(`open work was not looked for: ${error.message}`)))

  return {
    get,
    peek: plain.peek,
    sweptAt: () => sweptAt,
    count: Effect.suspend(() =>
      Effect.map(
        Effect.filter([...started.keys()], (id) => Effect.map(plain.peek(id), Option.isSome)),
        (here) => here.length,
      ),
    ),
    begin: Effect.zipRight(
      shards.listen({ gained: recover, leaving }),
      Effect.forkScoped(Effect.forever(Effect.delay(sweep, sweepEvery))),
    ),
  }
}
