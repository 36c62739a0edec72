/**
 * The node of one process among those of a cluster: the engine on the shared database, the shards that it takes, its connections to the
 * others, and the sessions of them all as one. Order at the end: the others are told, shards go with their work stopped cleanly, then the
 * connections, then the node, then its epoch.
 */
import { randomUUID } from "node:crypto"
import { Context, Effect, Layer, type Redacted } from "effect"
import { orStorageFailure } from "./actors/conversation/failures.ts"
import type { SessionsService, Target } from "./actors/sessions.ts"
import { buildNode } from "./assembly-services.ts"
import { version } from "./cli/package.ts"
import type { NodeOptions, OpenedNode } from "./cli/ports.ts"
import { type ClusterSettings, nodeNameAt } from "./domain/cluster-settings.ts"
import { ServiceFailure } from "./domain/failure.ts"
import { type HostPort, parseHostPort, renderHostPort } from "./domain/host-port.ts"
import { advertisedAddress } from "./protocols/peers/address.ts"
import { checkMembers } from "./protocols/peers/check.ts"
import { makePeers } from "./protocols/peers/peers.ts"
import { routedSessions, type Whereabouts } from "./protocols/peers/routing.ts"
import { listenPeers } from "./protocols/peers/serve.ts"
import type { PeerIdentity, PeersService } from "./protocols/peers/service.ts"
import { loadPeerTls } from "./protocols/peers/tls.ts"
import { ClusterStore } from "./storage/cluster-port.ts"
import { prepareSchema } from "./storage/postgres/auto-migrate.ts"
import { lockClient } from "./storage/postgres/lock-client.ts"
import { ownDatabase } from "./storage/postgres/ownership.ts"
import { postgresPathLocks } from "./storage/postgres/path-locks.ts"
import { type RosterNode, readRoster, readSystem } from "./storage/postgres/roster.ts"
import type { PostgresSettings } from "./storage/postgres/settings.ts"
import { postgresSignals } from "./storage/postgres/signals.ts"
import { makePostgresNode } from "./storage/postgres/store.ts"
import { rememberPlaces } from "./storage/remembered-places.ts"
import { Signals } from "./storage/signal-port.ts"
import { Store, type StoreService } from "./storage/store.ts"
import { Clustering } from "./supervisors/cluster/clustering.ts"
import { discoveryOf } from "./supervisors/cluster/discovery/discovery.ts"
import { type Member, makeMember, placedStore } from "./supervisors/cluster/member.ts"
import { Placement } from "./supervisors/cluster/placement.ts"
import { busyHere, memberService } from "./supervisors/cluster/service.ts"
import { idleSessionSeconds } from "./supervisors/cluster/sharding.ts"
import { makeShards } from "./supervisors/cluster/shards.ts"
import { PathLocks } from "./tools/path-locks.ts"

export interface ClusterNodeOptions extends NodeOptions {
  readonly cluster: ClusterSettings
  readonly postgres: PostgresSettings
  /** For programs that come and go: on any free port, and without shards where other nodes are there to take them. */
  readonly guest: boolean
  /** Told once, with one line, when this node is no member any more and its process must end. */
  readonly onLost: (why: string) => Effect.Effect<void>
}

/** Beside the node of this machine, whose name and port it must not take. */
const asGuest = (settings: ClusterSettings): ClusterSettings => ({
  ...settings,
  name: null,
  advertise: null,
  listen: { ...settings.listen, port: 0 },
})

const notJoined = (cause: Error): ServiceFailure =>
  new ServiceFailure({
    code: "cluster",
    detail: `the node did not join the cluster: ${cause.message}`,
    reference: "join",
  })

/** Keeps the connections up to date with who is alive by the database. */
const tellMembers = (peers: () => PeersService | null) => {
  let told = ""
  return (members: ReadonlyArray<RosterNode>): Effect.Effect<void> =>
    Effect.suspend(() => {
      const connected = peers()
      const wanted = members.flatMap(({ address, epoch }) => {
        const at = parseHostPort(address, 0)
        return at === null ? [] : [{ epoch, address: at }]
      })
      const now = JSON.stringify(wanted)
      if (connected === null || now === told) return Effect.void
      told = now
      return connected.wanted(wanted)
    })
}

/** Where the members that are alive are reached, but for this node. */
const addressesOf = (members: ReadonlyArray<RosterNode>, self: number): ReadonlyArray<HostPort> =>
  members.flatMap(({ address, alive, epoch }) => {
    const at = alive && epoch !== self ? parseHostPort(address, 0) : null
    return at === null ? [] : [at]
  })

const whereaboutsOf = (member: Member, store: StoreService): Whereabouts => ({
  self: member.epoch,
  ofConversation: member.holderOfConversation,
  ofTask: member.holderOfTask,
  conversationOf: (id) => Effect.map(orStorageFailure(store.task(id)), (task) => task?.conversation ?? null),
})

/** Opens a node of the cluster until the scope closes; it takes part when it answers. */
export const openCluster = (options: ClusterNodeOptions) =>
  Effect.gen(function* () {
    const { guest, postgres } = options
    const settings = guest ? asGuest(options.cluster) : options.cluster
    const tls = settings.tls === null ? null : yield* loadPeerTls(settings.tls)
    yield* prepareSchema(postgres)
    yield* ownDatabase(postgres, { as: "clustered", program: options.program })
    const listener = yield* listenPeers({ ...settings.listen, tls })
    const address = advertisedAddress(settings, listener.port)
    const name = nodeNameAt(settings, address)
    const shards = yield* makeShards
    const { cluster, store } = yield* makePostgresNode({
      settings: postgres,
      node: { name, address: renderHostPort(address), version: version() },
      held: shards.held,
    })
    const clusterStore = rememberPlaces(cluster)
    const { epoch } = store
    let peers: PeersService | null = null
    const locks = yield* lockClient(postgres, epoch, idleSessionSeconds).pipe(Effect.mapError(notJoined))
    const member = makeMember({
      store,
      clusterStore,
      locks,
      shards,
      drainMs: settings.drainMs,
      guest,
      onMembers: tellMembers(() => peers),
      onLost: options.onLost,
    })
    const self: PeerIdentity = {
      name,
      epoch,
      address: renderHostPort(address),
      instance: randomUUID(),
      version: version(),
      system: yield* Effect.mapError(readSystem(locks), notJoined),
    }

    let routed: SessionsService | null = null
    const ask: Parameters<typeof memberService>[0]["ask"] = (other) =>
      peers === null ? Effect.succeed(null) : Effect.orElseSucceed(peers.info(other), () => null)
    const queues = () => routed?.queues ?? null
    const parts = { member, name, strategy: settings.discovery.strategy, clusterStore, queues, ask }

    const join = (here: SessionsService) =>
      Effect.gen(function* () {
        const secret = settings.secret as Redacted.Redacted<string>
        const greeting = { self, secret, onlyNames: settings.onlyNames }
        const info = Effect.zipWith(member.machines, busyHere(parts), (machines, busy) => ({
          machines,
          busy: busy ?? 0,
          draining: member.isDraining(),
          shards: member.shards.held(),
        }))
        // Work that it took could not be reached by members that turn it away.
        const members = addressesOf(yield* Effect.mapError(readRoster(locks), notJoined), epoch)
        yield* Effect.mapError(checkMembers(members, { ...greeting, tls }), notJoined)
        yield* listener.serve({ ...greeting, sessions: here, info })
        const discovery = yield* discoveryOf(settings, { name, address, instance: self.instance })
        const connected = yield* makePeers({ ...greeting, tls, discovered: discovery.peers })
        peers = connected
        const sessions = routedSessions({ here, link: connected.link, whereabouts: whereaboutsOf(member, store) })
        routed = sessions
        yield* member.join(renderHostPort(address)).pipe(Effect.mapError(notJoined))
        return sessions
      })

    const stateOf = (target: Target) => Effect.suspend(() => (routed === null ? unready : routed.state(target)))
    const services = Context.make(Store, placedStore(store, clusterStore, shards)).pipe(
      Context.add(ClusterStore, clusterStore),
      Context.add(Placement, shards),
      Context.add(Signals, yield* postgresSignals(postgres)),
      Context.add(PathLocks, yield* postgresPathLocks(postgres)),
      Context.add(Clustering, { gate: member.gate, stateOf, join }),
    )
    const sessions = yield* buildNode(options.db, options, Layer.succeedContext(services))
    const opened: OpenedNode = { sessions, cluster: memberService(parts) }
    return opened
  })

const unready = Effect.fail(
  new ServiceFailure({ code: "cluster", detail: "the node has not joined the cluster yet", reference: "join" }),
)
