/**
 * A node that is alone with its database, as a cluster of one: what it says of itself comes from its supervision tree and from the store.
 *
 *   up → draining (the gate is closed, running turns end or their time is over; for good)
 */
import { Clock, Deferred, Effect, FiberId, Schedule } from "effect"
import type { ClusterService } from "../actors/cluster.ts"
import type { SessionsService } from "../actors/sessions.ts"
import { type ClusterStatus, type NodeHealth, shardCount } from "../domain/cluster.ts"
import type { StoreReads } from "../storage/store.ts"
import { makeGate } from "./gate.ts"
import { isBusy, type MachineView, machinesIn } from "./machines.ts"
import { oldestMs, unserved } from "./unserved.ts"

/** For each thing that is asked, in ms. */
const answerMs = 2_000
/** A turn of the event loop that takes longer counts as stuck, in ms. */
const lagLimitMs = 1_000
/** Work that waits longer while nothing is at work counts as stuck, in ms. */
const unservedLimitMs = 60_000
/** Between two looks at what still runs while it drains, in ms. */
const lookMs = 50
/** For how long a conversation that cannot be started is left out of the judgement, in ms. */
const brokenMs = 60_000

export interface AloneOptions {
  readonly sessions: SessionsService
  /** Reads of the database beside the node. */
  readonly reads: Pick<StoreReads, "openTasks" | "ownerEpoch" | "conversation">
  readonly name: string
  readonly version: string
  /** Milliseconds since the epoch. */
  readonly startedAt: number
  /** For running turns once it drains, in ms. */
  readonly drainMs: number
  /** Whether the turns run in this process, and not in another one that it is attached to. */
  readonly owns: () => boolean
}

/** Null where it fails or does not answer in time. */
const orNull = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A | null> =>
  read.pipe(
    Effect.timeout(answerMs),
    Effect.catchAllCause(() => Effect.succeed(null)),
  )

/** The sessions to serve, which stop taking turns when the node drains, and what is said of the node. */
export const makeAlone = (
  options: AloneOptions,
): { readonly sessions: SessionsService; readonly cluster: ClusterService } => {
  const { name, reads, startedAt, version } = options
  const gate = makeGate(options.sessions)
  const ended = Deferred.unsafeMake<void>(FiberId.none)
  const broken = new Map<number, number>()
  let draining = false

  const machines: Effect.Effect<ReadonlyArray<MachineView> | null> = orNull(
    Effect.map(options.sessions.tree, machinesIn),
  )

  const waiting = Effect.gen(function* () {
    const known = new Set(((yield* machines) ?? []).map(({ conversation }) => conversation))
    const now = yield* Clock.currentTimeMillis
    const found = unserved(yield* reads.openTasks(), known, yield* options.sessions.queues, now)
    return found.filter(({ conversation }) => conversation === null || (broken.get(conversation) ?? 0) <= now)
  }).pipe(orNull)

  const waitingMs = Effect.zipWith(waiting, Clock.currentTimeMillis, (found, now) => oldestMs(found ?? [], now))

  const status: Effect.Effect<ClusterStatus> = Effect.gen(function* () {
    const [known, oldestUnservedMs, epoch] = yield* Effect.all([machines, waitingMs, orNull(reads.ownerEpoch)], {
      concurrency: "unbounded",
    })
    return {
      node: name,
      strategy: "none",
      members: [
        {
          name,
          epoch: epoch ?? 0,
          address: "",
          self: true,
          state: draining ? "draining" : "up",
          version,
          startedAt,
          shards: shardCount,
          machines: known?.length ?? null,
          busy: known?.filter(isBusy).length ?? null,
        },
      ],
      shards: { total: shardCount, held: shardCount, unheld: 0 },
      oldestUnservedMs,
      draining,
    }
  })

  /** A conversation that waits without cause is started; one that cannot be is told of, and not waited for. */
  const nudge = (id: number): Effect.Effect<string | null> =>
    Effect.gen(function* () {
      const tasks = yield* reads.openTasks()
      const task = tasks.find(({ conversation }) => conversation === id)
      const row = task === undefined || task.conversation === null ? null : yield* reads.conversation(task.conversation)
      if (row === null) return null
      yield* options.sessions.state({ conversationId: row.id, principal: row.principal })
      return null
    }).pipe(
      Effect.timeout(answerMs),
      Effect.catchAll(() =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          broken.set(id, now + brokenMs)
          return `conversation ${id} has open work and cannot be started; the log says why`
        }),
      ),
    )

  const health: Effect.Effect<NodeHealth> = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    yield* Effect.sleep(0)
    const eventLoopLagMs = (yield* Clock.currentTimeMillis) - before
    const read = options.sessions.list({ limit: 1, principal: "health" })
    const [answered, found, known] = yield* Effect.all([orNull(read), waiting, machines], { concurrency: "unbounded" })
    const now = yield* Clock.currentTimeMillis
    const late = (found ?? []).filter(({ since }) => now - since > unservedLimitMs)
    const nudged = yield* Effect.forEach(
      new Set(late.flatMap(({ conversation }) => conversation ?? []).slice(0, 8)),
      nudge,
      { concurrency: "unbounded" },
    )
    const left = late.filter(({ conversation }) => conversation === null || !broken.has(conversation))
    const stuck = left.length > 0 && (known ?? []).every((machine) => !isBusy(machine))
    const isLate = eventLoopLagMs >= lagLimitMs
    const healthy = answered !== null && !stuck && !isLate
    return {
      healthy,
      ready: healthy && !draining,
      faults: [
        ...(answered === null ? [`the database did not answer within ${answerMs} ms`] : []),
        ...(isLate ? [`the event loop is ${eventLoopLagMs} ms late`] : []),
        ...(stuck
          ? [`work has waited for ${Math.round((oldestMs(left, now) ?? 0) / 1000)} s and nothing is at work`]
          : []),
        ...nudged.filter((line) => line !== null),
        ...(draining ? ["the node is draining"] : []),
      ],
      database: answered === null ? "failed" : "ok",
      eventLoopLagMs,
      oldestUnservedMs: oldestMs(found ?? [], now),
      draining,
    }
  })

  /** What runs here has ended: turns, and calls that may begin one. A tree that cannot be read is looked at again. */
  const atRest = Effect.map(machines, (known) => known !== null && gate.inFlight() === 0 && !known.some(isBusy))

  const drain = Effect.suspend(() => {
    if (draining) return Deferred.await(ended)
    draining = true
    gate.close()
    const quiet = Effect.repeat(atRest, { until: (rest) => rest, schedule: Schedule.spaced(lookMs) })
    return (options.owns() ? Effect.timeoutOption(quiet, options.drainMs) : Effect.void).pipe(
      Effect.ensuring(Deferred.succeed(ended, undefined)),
      Effect.asVoid,
    )
  })

  return { sessions: gate.sessions, cluster: { status, health, drain } }
}
