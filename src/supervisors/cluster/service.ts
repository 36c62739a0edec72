/**
 * What a member of a cluster says of itself and of the others. Healthy means that its own work is moving: the database answers, the event
 * loop turns, this node is a member and looks after what its shards have to do, and no job that it could run has been due for long while none
 * of its queue runs. What others leave lying is theirs to say: one sick node must not have all of them restarted.
 */
import { Clock, Effect } from "effect"
import type { ClusterService } from "../../actors/cluster.ts"
import { type ClusterMember, shardCount } from "../../domain/cluster.ts"
import type { Failure } from "../../domain/failure.ts"
import type { QueueView } from "../../domain/queue.ts"
import type { ClusterStoreService } from "../../storage/cluster-port.ts"
import type { RosterNode } from "../../storage/postgres/roster.ts"
import { unservedLimitMs } from "../judge-health.ts"
import { oldestMs, unserved } from "../unserved.ts"
import type { Member } from "./member.ts"

/** For each thing that is asked, in ms. */
const answerMs = 2_000
/** A turn of the event loop that takes longer counts as stuck, in ms. */
const lagLimitMs = 1_000
/** A look at the database that is older counts as none, in ms. */
const staleMs = 5_000

/** What another node says of itself. */
export interface OtherNode {
  readonly machines: number
  readonly busy: number
}

export interface MemberServiceParts {
  readonly member: Member
  readonly name: string
  readonly strategy: string
  readonly clusterStore: ClusterStoreService
  /** Queues with the jobs that this node may run; null before it has joined. */
  readonly queues: () => Effect.Effect<ReadonlyArray<QueueView>, Failure> | null
  /** Null: it cannot be reached, or did not answer in time. */
  readonly ask: (epoch: number) => Effect.Effect<OtherNode | null>
}

/** Not waiting for the end of what comes too late: over a network that is cut it takes longer. */
const inTime = <A, E>(answer: Effect.Effect<A, E>) => Effect.timeout(Effect.disconnect(answer), answerMs)

/** Conversations of this node that work, by the database. */
export const busyHere = ({ clusterStore, member }: Pick<MemberServiceParts, "clusterStore" | "member">) =>
  Effect.suspend(() => clusterStore.busyConversations(member.shards.held())).pipe(
    Effect.map((busy) => busy.length),
    inTime,
    Effect.orElseSucceed(() => null),
  )

export const memberService = (parts: MemberServiceParts): ClusterService => {
  const { clusterStore, member, name, strategy } = parts
  const { roster, shards } = member

  const oldest = clusterStore.oldestUnserved.pipe(
    inTime,
    Effect.map((since) => ({ since })),
    Effect.orElseSucceed(() => null),
  )
  const dueJobs = Effect.suspend(() => parts.queues() ?? Effect.succeed([])).pipe(
    inTime,
    Effect.orElseSucceed((): ReadonlyArray<QueueView> => []),
  )
  const ageOf = (since: number | null, at: number): number | null => (since === null ? null : Math.max(0, at - since))

  const self = (node: RosterNode): Effect.Effect<ClusterMember> =>
    Effect.zipWith(member.machines, busyHere(parts), (machines, busy) => ({
      ...common(node),
      self: true,
      state: member.isDraining() ? "draining" : "up",
      shards: shards.held().length,
      machines,
      busy,
    }))

  const other = (node: RosterNode): Effect.Effect<ClusterMember> =>
    Effect.map(
      Effect.catchAllCause(
        Effect.timeoutTo(parts.ask(node.epoch), {
          duration: answerMs,
          onSuccess: (said) => said,
          onTimeout: () => null,
        }),
        () => Effect.succeed(null),
      ),
      (said) => ({
        ...common(node),
        self: false,
        state: said === null ? "unreachable" : node.draining ? "draining" : "up",
        shards: node.shards.length,
        machines: said?.machines ?? null,
        busy: said?.busy ?? null,
      }),
    )

  return {
    drain: member.drain,
    status: Effect.gen(function* () {
      const members = yield* Effect.forEach(
        roster.members,
        (node) => (node.epoch === member.epoch ? self(node) : other(node)),
        { concurrency: "unbounded" },
      )
      const waiting = yield* oldest
      const now = yield* Clock.currentTimeMillis
      const held = Math.max(roster.heldCount, shards.held().length)
      return {
        node: name,
        strategy,
        members,
        shards: { total: shardCount, held, unheld: shardCount - held },
        oldestUnservedMs: ageOf(waiting?.since ?? null, now),
        draining: member.isDraining(),
      }
    }),
    health: Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      yield* Effect.sleep(0)
      const eventLoopLagMs = (yield* Clock.currentTimeMillis) - before
      const waiting = yield* oldest
      const due = yield* dueJobs
      const now = yield* Clock.currentTimeMillis
      const oldestUnservedMs = ageOf(waiting?.since ?? null, now)
      const dueMs = oldestMs(unserved([], new Set(), due, now), now)
      const answers = waiting !== null && roster.age(performance.now()) < staleMs
      const isMember = roster.includesSelf
      const draining = member.isDraining()
      const isLate = eventLoopLagMs >= lagLimitMs
      const late = dueMs !== null && dueMs > unservedLimitMs
      const asleep = answers && member.sweepAge() > unservedLimitMs
      const healthy = answers && isMember && !isLate && !late && !asleep
      return {
        healthy,
        ready: healthy && !draining,
        faults: [
          ...(answers ? [] : [`the database did not answer within ${answerMs} ms`]),
          ...(answers && !isMember ? ["this node is no member of the cluster"] : []),
          ...(isLate ? [`the event loop is ${eventLoopLagMs} ms late`] : []),
          ...(late ? [`a job has been due for ${Math.round(dueMs / 1000)} s and none of its queue runs`] : []),
          ...(asleep ? [`open work has not been looked for since ${Math.round(member.sweepAge() / 1000)} s`] : []),
          ...(draining ? ["the node is draining"] : []),
        ],
        database: answers ? "ok" : "failed",
        eventLoopLagMs,
        oldestUnservedMs,
        draining,
      }
    }),
  }
}

const common = ({ address, epoch, name, startedAt, version }: RosterNode) => ({
  name,
  epoch,
  address,
  version,
  startedAt,
})
