/**
 * This process as a member of the cluster: its shards, what it knows of the others, its way in and its way out.
 *
 *   made → joined (registered, takes shards, recovers) → draining (shards go to others, turns end) → left
 *
 * A member that the database does not count in any more (fenced off, or its locks went to others while it was stopped) is lost: whoever made
 * it is told once, and ends the process.
 */
import { SqlClient } from "@effect/sql/SqlClient"
import { Deferred, Effect, FiberId, Schedule, type Scope } from "effect"
import { orStorageFailure } from "../../actors/conversation/failures.ts"
import { type Holder, shardOf } from "../../domain/cluster.ts"
import { Busy, type Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { ClusterStoreService } from "../../storage/cluster-port.ts"
import { Fenced } from "../../storage/errors.ts"
import { markDraining, type RosterNode, readRoster, registerMember } from "../../storage/postgres/roster.ts"
import type { StoreService } from "../../storage/store.ts"
import type { Conversations } from "../conversations.ts"
import { type Machines, makeMachines } from "./machines.ts"
import { Roster } from "./roster.ts"
import { joinSharding } from "./sharding.ts"
import type { Shards } from "./shards.ts"
import { watchdog } from "./watchdog.ts"

/** How long work of a shard may take to end when the shard goes to another node, in ms; beyond that it goes on there. */
const moveGraceMs = 5_000
/** Between two looks at what is left while draining, in ms. */
const lookMs = 50
/** A question to the database after a pause, in ms. */
const askMs = 3_000

const now = (): number => performance.now()

export interface MemberParts {
  readonly store: StoreService
  readonly clusterStore: ClusterStoreService
  /** Of its own, named `lockConnectionName(epoch)`: its idle sessions are ended by the server. */
  readonly locks: SqlClient
  readonly shards: Shards
  /** For running turns once it drains, in ms. */
  readonly drainMs: number
  /** Takes no shards where other nodes are there to take them: for programs that come and go. */
  readonly guest: boolean
  /** Told a few times a second who takes part, this node included. */
  readonly onMembers: (members: ReadonlyArray<RosterNode>) => Effect.Effect<void>
  /** Told once, with one line, when this node is no member any more. */
  readonly onLost: (why: string) => Effect.Effect<void>
}

export interface Member {
  readonly roster: Roster
  readonly shards: Shards
  readonly epoch: number
  readonly gate: (plain: Conversations) => Conversations
  /** Conversations in memory; 0 before {@link gate}. */
  readonly machines: Effect.Effect<number>
  /** Milliseconds since it was last looked whether open work is at work; 0 before {@link gate}. */
  readonly sweepAge: () => number
  readonly holderOfConversation: (id: ConversationId) => Effect.Effect<Holder, Failure>
  readonly holderOfTask: (id: TaskId) => Effect.Effect<Holder, Failure>
  /** Registers under `address` and takes part until the scope closes. */
  readonly join: (address: string) => Effect.Effect<void, Error, Scope.Scope>
  readonly drain: Effect.Effect<void>
  readonly isDraining: () => boolean
}

/** The store of a member: it takes conversations only at places that it holds, so that a stale machine cannot take one back. */
export const placedStore = (store: StoreService, cluster: ClusterStoreService, shards: Shards): StoreService => ({
  ...store,
  takeConversation: (id) =>
    Effect.flatMap(cluster.placeOfConversation(id), (place) =>
      place === null || shards.has(shardOf(place))
        ? store.takeConversation(id)
        : Effect.fail(new Fenced({ what: `conversation ${id}`, held: store.epoch, current: store.epoch + 1 })),
    ),
})

const drainingAlone = new Busy({
  what: "node",
  detail: "it is draining, and there is no other one",
  retryAfterMs: 2_000,
})

export const makeMember = (parts: MemberParts): Member => {
  const { clusterStore, drainMs, locks, shards, store } = parts
  const { epoch } = store
  const roster = new Roster(epoch)
  const drained = Deferred.unsafeMake<void>(FiberId.none)
  let draining = false
  let drainUntil = 0
  let lost = false
  let machines: Machines | null = null

  const lose = (why: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      if (lost) return Effect.void
      lost = true
      return Effect.zipRight(shards.lose(shards.all()), parts.onLost(why))
    })

  const holderAt = (place: number | null): Effect.Effect<Holder, Failure> => {
    // nobody has it: this node says that there is no such thing
    if (place === null) return Effect.succeed("here")
    const shard = shardOf(place)
    if (shards.has(shard)) return Effect.succeed("here")
    if (draining && roster.members.every((node) => node.epoch === epoch)) return Effect.fail(drainingAlone)
    const holder = roster.holderOf(shard)
    return Effect.succeed(holder === null || holder === epoch ? "nobody" : { epoch: holder })
  }

  /** Whether the database still counts this node in, with all that it believes to hold. */
  const stillHere = readRoster(locks).pipe(
    Effect.map((nodes) => {
      const self = nodes.find((node: RosterNode) => node.epoch === epoch)
      return self !== undefined && shards.all().every((shard) => self.shards.includes(shard))
    }),
    Effect.timeout(askMs),
    // a server that is away lets nobody take anything
    Effect.catchAll(() => Effect.succeed(true)),
  )

  /** After each look at the database. */
  const looked = Effect.suspend(() =>
    Effect.zipRight(
      roster.includesSelf ? Effect.void : lose("another node fenced it off"),
      parts.onMembers(roster.members),
    ),
  )

  const drain = Effect.suspend(() => {
    if (draining) return Deferred.await(drained)
    draining = true
    drainUntil = now() + drainMs
    const told = Effect.retry(markDraining(locks, epoch), { times: 5, schedule: Schedule.spaced("100 millis") }).pipe(
      Effect.catchAll((error) => Effect.logWarning(`other nodes were not told of the drain: ${error.message}`)),
    )
    const given = Effect.gen(function* () {
      while (shards.all().length > 0 && now() < drainUntil + moveGraceMs) yield* Effect.sleep(lookMs)
    })
    return Effect.zipRight(told, given).pipe(Effect.ensuring(Deferred.succeed(drained, undefined)), Effect.asVoid)
  })

  return {
    roster,
    shards,
    epoch,
    gate: (plain) => {
      machines = makeMachines({ plain, shards, store: clusterStore, now })
      return machines
    },
    sweepAge: () => (machines === null ? 0 : now() - machines.sweptAt()),
    machines: Effect.suspend(() => machines?.count ?? Effect.succeed(0)),
    holderOfConversation: (id) => Effect.flatMap(orStorageFailure(clusterStore.placeOfConversation(id)), holderAt),
    holderOfTask: (id) => Effect.flatMap(orStorageFailure(clusterStore.placeOfTask(id)), holderAt),
    isDraining: () => draining,
    drain,
    join: (address) =>
      Effect.gen(function* () {
        if (machines !== null) yield* machines.begin
        yield* registerMember(locks, { epoch, address, guest: parts.guest })
        yield* joinSharding({
          epoch,
          roster,
          shards,
          now,
          graceMs: () => (draining ? Math.max(0, drainUntil - now()) : moveGraceMs),
          fenceOff: (other) =>
            Effect.zipRight(
              Effect.logWarning(`node ${other} has gone without a word and is fenced off`),
              Effect.ignore(clusterStore.fenceOff(other)),
            ),
          looked,
          onLost: (gone) => Effect.logWarning(`locks of ${gone.length} shards were lost; their work stops here`),
        }).pipe(Effect.provideService(SqlClient, locks))
        // First at the end: the others take what this node hands back.
        yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(markDraining(locks, epoch), askMs)))
        yield* watchdog({
          stillHere,
          onLost: (paused) => lose(`it was stopped for ${paused} ms, and others have its work now`),
        })
      }),
  }
}
