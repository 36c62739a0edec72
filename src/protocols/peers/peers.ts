/**
 * Keeps one connection to every other node. Owner of all of them. Rules:
 * 1. Candidates are the addresses that discovery and the database name. Each has one fiber, which connects, waits for the end, and tries
 *    again after 100 ms to 2 s; a call that wants its node, or a new list that names it, makes it try at once.
 * 2. A candidate that is this node, or a node that is connected under another address, rests: the first connection of an epoch counts.
 * 3. A candidate that is named no more is not tried again; its connection stays until it ends.
 */
import { Clock, Deferred, Effect, FiberId, type Scope, Stream, SubscriptionRef } from "effect"
import { type HostPort, renderHostPort } from "../../domain/host-port.ts"
import { type ConnectOptions, connectPeer, type PeerConnection } from "./connect.ts"
import { isLasting, type PeerFault } from "./faults.ts"
import { type PeerIdentity, type PeerInfo, type PeersService, PeerUnreachable, type WantedPeer } from "./service.ts"

export interface PeersOptions extends ConnectOptions {
  /** The addresses that discovery finds, the whole list at each change. */
  readonly discovered: Stream.Stream<ReadonlyArray<HostPort>>
  /** How long a call waits for a connection that is being made, in milliseconds. Default 2,000. */
  readonly waitMs?: number
}

const defaultWaitMs = 2000
/** The pauses between attempts, in milliseconds: doubled from the first to the last. */
const firstPauseMs = 100
const lastPauseMs = 2000
/** Attempts in a row, some 15 s, after which people are told of what may still pass by itself. */
const toldAfter = 12
/** How long a node may take to say how it is, in milliseconds. */
const infoMs = 2000

/** An address and what is known of it. */
interface Candidate {
  readonly address: HostPort
  readonly key: string
  /** Whether discovery or the database names it. */
  named: boolean
  peer: PeerIdentity | null
  connectedSince: number | null
  /** Whether it is this node, or one that is connected under another address. */
  resting: boolean
  lastError: string | null
  failures: number
  /** What the log was told last; null: nothing since it was connected. */
  told: string | null
  /** Ends the pause before the next attempt. */
  hurry: Deferred.Deferred<void>
}

interface Link {
  readonly connection: PeerConnection
  readonly candidate: Candidate
}

/** Connects to the other nodes until the scope closes. */
export const makePeers = (options: PeersOptions): Effect.Effect<PeersService, never, Scope.Scope> =>
  Effect.gen(function* () {
    const scope = yield* Effect.scope
    const candidates = new Map<string, Candidate>()
    const links = new Map<number, Link>()
    let discovered: ReadonlyArray<HostPort> = []
    let members: ReadonlyArray<WantedPeer> = []
    let changed = Deferred.unsafeMake<void>(FiberId.none)
    const shown = yield* SubscriptionRef.make<ReadonlyArray<PeerInfo>>([])
    const waitMs = options.waitMs ?? defaultWaitMs

    const known = (): ReadonlyArray<PeerInfo> => [...candidates.values()].filter((one) => !one.resting).map(infoOf)
    const announce = Effect.suspend(() => {
      const done = changed
      changed = Deferred.unsafeMake<void>(FiberId.none)
      Deferred.unsafeDone(done, Effect.void)
      return SubscriptionRef.set(shown, known())
    })

    const hasFailed = (candidate: Candidate, fault: PeerFault) =>
      Effect.gen(function* () {
        candidate.failures++
        candidate.lastError = fault.message
        if (candidate.told !== fault.message && (isLasting(fault.reason) || candidate.failures >= toldAfter)) {
          candidate.told = fault.message
          yield* Effect.logWarning(`no connection to a node: ${fault.message}`)
        }
        yield* announce
        yield* pause(candidate, Math.min(lastPauseMs, firstPauseMs * 2 ** Math.min(candidate.failures - 1, 10)))
      })

    const isLinked = (candidate: Candidate, connection: PeerConnection) =>
      Effect.gen(function* () {
        const { peer } = connection
        const line = `${peer.name} (node ${peer.epoch}) at ${candidate.key}`
        candidate.peer = peer
        candidate.connectedSince = yield* Clock.currentTimeMillis
        candidate.lastError = null
        candidate.failures = 0
        candidate.told = null
        yield* announce
        yield* Effect.logInfo(`connected to ${line}`)
        yield* connection.gone
        yield* Effect.logInfo(`the connection to ${line} has ended`)
      }).pipe(
        Effect.ensuring(
          Effect.suspend(() => {
            links.delete(connection.peer.epoch)
            candidate.connectedSince = null
            candidate.lastError = "the connection has ended"
            return announce
          }),
        ),
        Effect.zipLeft(pause(candidate, firstPauseMs)),
      )

    /** Waits while there is nothing to do at this address. */
    const rest = (candidate: Candidate, until: Effect.Effect<void>) =>
      Effect.suspend(() => {
        candidate.resting = true
        candidate.lastError = null
        return announce
      }).pipe(
        Effect.zipRight(Effect.raceFirst(until, unnamed(candidate))),
        Effect.ensuring(
          Effect.sync(() => {
            candidate.resting = false
          }),
        ),
      )
    const unnamed = (candidate: Candidate): Effect.Effect<void> =>
      Effect.suspend(() =>
        candidate.named ? Effect.zipRight(Deferred.await(changed), unnamed(candidate)) : Effect.void,
      )

    const attempt = (candidate: Candidate): Effect.Effect<void> =>
      Effect.scoped(
        Effect.flatMap(connectPeer(candidate.address, options), (connection) => {
          const other = links.get(connection.peer.epoch)
          if (other !== undefined) return Effect.succeed(other.connection.gone)
          links.set(connection.peer.epoch, { connection, candidate })
          return isLinked(candidate, connection)
        }),
      ).pipe(
        Effect.flatMap((otherGone) => (otherGone === undefined ? Effect.void : rest(candidate, otherGone))),
        Effect.catchAll((fault) =>
          fault.reason === "self" ? rest(candidate, Effect.never) : hasFailed(candidate, fault),
        ),
      )

    const keep = (candidate: Candidate): Effect.Effect<void> =>
      Effect.suspend(() => {
        if (candidate.named) return Effect.zipRight(attempt(candidate), keep(candidate))
        candidates.delete(candidate.key)
        return announce
      })

    /** Takes the two lists over; what is new in them is tried at once. */
    const survey = Effect.suspend(() => {
      const named = new Map(
        [...discovered, ...members.map((one) => one.address)].map((one) => [renderHostPort(one), one]),
      )
      const fresh: Array<Candidate> = []
      for (const candidate of candidates.values()) {
        const was = candidate.named
        candidate.named = named.has(candidate.key)
        if (candidate.named !== was) hurry(candidate)
      }
      for (const [key, address] of named) {
        if (candidates.has(key)) continue
        const candidate = newCandidate(key, address)
        candidates.set(key, candidate)
        fresh.push(candidate)
      }
      return Effect.zipRight(
        announce,
        Effect.forEach(fresh, (candidate) => Effect.forkIn(keep(candidate), scope), { discard: true }),
      )
    })

    yield* options.discovered.pipe(
      Stream.runForEach((list) =>
        Effect.suspend(() => {
          discovered = list
          return survey
        }),
      ),
      Effect.forkIn(scope),
    )

    const candidateOf = (epoch: number): Candidate | null => {
      const address = members.find((one) => one.epoch === epoch)?.address
      return address === undefined ? null : (candidates.get(renderHostPort(address)) ?? null)
    }
    const reasonFor = (epoch: number): string => {
      const candidate = candidateOf(epoch)
      if (candidate === null) return "no address of it is known"
      const { peer, connectedSince } = candidate
      if (connectedSince !== null && peer !== null) return `at its address there is node ${peer.epoch} now`
      return candidate.lastError ?? `${candidate.key} has not answered yet`
    }

    const linked = (epoch: number): Effect.Effect<Link> =>
      Effect.suspend(() => {
        const link = links.get(epoch)
        return link === undefined ? Effect.zipRight(Deferred.await(changed), linked(epoch)) : Effect.succeed(link)
      })
    const linkTo = (epoch: number): Effect.Effect<Link, PeerUnreachable> =>
      Effect.suspend(() => {
        const link = links.get(epoch)
        if (link !== undefined) return Effect.succeed(link)
        const unreachable = () => new PeerUnreachable({ epoch, reason: reasonFor(epoch) })
        if (epoch === options.self.epoch) {
          return new PeerUnreachable({ epoch, reason: "it is this node itself" })
        }
        const candidate = candidateOf(epoch)
        if (candidate !== null) hurry(candidate)
        return Effect.timeoutFail(linked(epoch), { duration: waitMs, onTimeout: unreachable })
      })

    return {
      link: (epoch) => Effect.map(linkTo(epoch), (link) => link.connection.sessions),
      info: (epoch) =>
        Effect.flatMap(linkTo(epoch), (link) =>
          Effect.timeoutFail(link.connection.info, {
            duration: infoMs,
            onTimeout: () => new PeerUnreachable({ epoch, reason: "it does not say how it is" }),
          }),
        ),
      known: Effect.sync(known),
      wanted: (list) =>
        Effect.suspend(() => {
          members = list
          return survey
        }),
      changes: shown.changes,
    }
  })

const newCandidate = (key: string, address: HostPort): Candidate => ({
  address,
  key,
  named: true,
  peer: null,
  connectedSince: null,
  resting: false,
  lastError: null,
  failures: 0,
  told: null,
  hurry: Deferred.unsafeMake(FiberId.none),
})

const infoOf = ({ peer, key, connectedSince, lastError }: Candidate): PeerInfo => ({
  name: peer?.name ?? null,
  epoch: peer?.epoch ?? null,
  address: key,
  version: peer?.version ?? null,
  connectedSince,
  lastError,
})

const hurry = (candidate: Candidate): void => Deferred.unsafeDone(candidate.hurry, Effect.void)

/** However many calls hurry, an address is not tried more often than each {@link firstPauseMs}. */
const pause = (candidate: Candidate, ms: number): Effect.Effect<void> =>
  Effect.suspend(() => {
    candidate.hurry = Deferred.unsafeMake(FiberId.none)
    const rest = Effect.raceFirst(Effect.sleep(ms - firstPauseMs), Deferred.await(candidate.hurry))
    return Effect.zipRight(Effect.sleep(firstPauseMs), rest)
  })
