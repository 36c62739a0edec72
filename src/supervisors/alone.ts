/**
 * A node that is alone with its database, as a cluster of one: what it says of itself comes from its supervision tree and from the store.
 *
 *   up → draining (the gate is closed, running turns end or their time is over; for good)
 */
import { Clock, Deferred, Effect, FiberId, Schedule } from "effect"
import type { ClusterService } from "../actors/cluster.ts"
import type { SessionsService } from "../actors/sessions.ts"
import { type ClusterStatus, type NodeHealth, shardCount } from "../domain/cluster.ts"
import type { ConversationId } from "../domain/ids.ts"
import type { StoreReads } from "../storage/store.ts"
import { makeGate } from "./gate.ts"
import { judgeHealth, unservedLimitMs } from "./judge-health.ts"
import { hasRoot, isBusy, type MachineView, machinesIn } from "./machines.ts"
import { oldestMs, type Unserved, unserved } from "./unserved.ts"

/** For each thing that is asked, in ms. */
const answerMs = 2_000
/** Between two looks at what still runs while it drains, in ms. */
const lookMs = 50
/** For how long a conversation that cannot be started is left out of the judgement, in ms. */
const brokenMs = 60_000
/** Conversations that one look starts at most. */
const nudged = 8

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
  const broken = new Map<ConversationId, number>()
  let draining = false

  const tree = orNull(options.sessions.tree)
  const machines = Effect.map(tree, (found) => (found === null ? null : machinesIn(found)))

  const waiting = (known: ReadonlyArray<MachineView>): Effect.Effect<ReadonlyArray<Unserved>> =>
    Effect.all([reads.openTasks(), options.sessions.queues, Clock.currentTimeMillis]).pipe(
      Effect.map(([tasks, queues, now]) =>
        unserved(tasks, new Set(known.map(({ conversation }) => conversation)), queues, now),
      ),
      orNull,
      Effect.map((found) => found ?? []),
    )

  const status: Effect.Effect<ClusterStatus> = Effect.gen(function* () {
    const known = yield* machines
    const [found, epoch] = yield* Effect.all([waiting(known ?? []), orNull(reads.ownerEpoch)], { concurrency: 2 })
    const oldestUnservedMs = oldestMs(found, yield* Clock.currentTimeMillis)
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

  /** A conversation that waits without cause is started. One that cannot be is not waited for, for a while. */
  const nudge = (id: ConversationId): Effect.Effect<void> =>
    Effect.flatMap(reads.conversation(id), (row) =>
      row === null ? Effect.void : options.sessions.state({ conversationId: id, principal: row.principal }),
    ).pipe(
      Effect.timeout(answerMs),
      Effect.catchAllCause(() => Effect.map(Clock.currentTimeMillis, (now) => broken.set(id, now + brokenMs))),
    )

  const health: Effect.Effect<NodeHealth> = Effect.gen(function* () {
    const before = yield* Clock.currentTimeMillis
    yield* Effect.sleep(0)
    const eventLoopLagMs = (yield* Clock.currentTimeMillis) - before
    const read = orNull(options.sessions.list({ limit: 1, principal: "health" }))
    const [answered, shown] = yield* Effect.all([read, tree], { concurrency: 2 })
    const known = shown === null ? [] : machinesIn(shown)
    const found = yield* waiting(known)
    const now = yield* Clock.currentTimeMillis
    const late = found.filter(({ since }) => now - since > unservedLimitMs)
    for (const [id, until] of broken) if (until <= now) broken.delete(id)
    const ids = new Set(late.flatMap(({ conversation }) => conversation ?? []).filter((id) => !broken.has(id)))
    yield* Effect.forEach([...ids].slice(0, nudged), nudge, { concurrency: "unbounded" })
    return judgeHealth({
      now,
      eventLoopLagMs,
      answered: answered !== null,
      rooted: shown === null ? null : hasRoot(shown),
      busy: known.filter(isBusy).length,
      waiting: found,
      broken: new Set(broken.keys()),
      draining,
    })
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
