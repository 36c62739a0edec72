/** What a node keeps of the others: one connection to each, made again when it breaks, and word of all of it. */
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Queue, Redacted, Scope, Stream } from "effect"
import type { HostPort } from "../../../src/domain/host-port.ts"
import { renderHostPort } from "../../../src/domain/host-port.ts"
import { ConversationId } from "../../../src/domain/ids.ts"
import type { PeerInfo, PeersService } from "../../../src/protocols/peers/service.ts"
import { identity, node, open, peersOf, secret, someInfo } from "./support.ts"

/** Completes with the first list of what is known that suits. */
const known = (peers: PeersService, suits: (list: ReadonlyArray<PeerInfo>) => boolean) =>
  Effect.map(Stream.runHead(Stream.filter(peers.changes, suits)), (head) =>
    head._tag === "Some" ? head.value : ([] as ReadonlyArray<PeerInfo>),
  )
const connected = (list: ReadonlyArray<PeerInfo>) =>
  list.filter((one) => one.connectedSince !== null).map((one) => one.epoch)

/** A node whose life can be ended before the test is over. */
const mortal = (epoch: number, rest: Parameters<typeof node>[1] = {}) =>
  Effect.gen(function* () {
    const life = yield* Scope.make()
    yield* Effect.addFinalizer(() => Scope.close(life, Exit.void))
    const alive = yield* Scope.extend(node(epoch, rest), life)
    return { ...alive, end: Scope.close(life, Exit.void) }
  })

describe("the connections of a node", () => {
  it.scopedLive("reach every node that discovery names, and every one that the database names", () =>
    Effect.gen(function* () {
      const two = yield* node(2)
      const three = yield* node(3)
      const peers = yield* peersOf(1, [two.address])
      yield* peers.wanted([{ epoch: 3, address: three.address }])
      const second = yield* peers.link(2)
      const third = yield* peers.link(3)
      expect((yield* second.tree).name).toBe("node 2")
      expect((yield* third.tree).name).toBe("node 3")
      expect(yield* peers.info(3)).toEqual(someInfo)
      const list = yield* known(peers, (one) => connected(one).length === 2)
      expect([...list].sort((a, b) => (a.epoch ?? 0) - (b.epoch ?? 0))).toMatchObject([
        { name: "super_pi@node-2", epoch: 2, address: renderHostPort(two.address), version: "1.0.0", lastError: null },
        { name: "super_pi@node-3", epoch: 3, address: renderHostPort(three.address) },
      ])
      expect(yield* peers.known).toEqual(list)
    }),
  )

  it.scopedLive("are one to a node that has several addresses, and none to itself", () =>
    Effect.gen(function* () {
      const itself = yield* node(1)
      const { address, fake } = yield* node(2)
      const peers = yield* peersOf(1, [itself.address, address])
      yield* peers.wanted([
        { epoch: 1, address: itself.address },
        { epoch: 2, address: { host: "localhost", port: address.port } },
      ])
      expect((yield* (yield* peers.link(2)).tree).name).toBe("node 2")
      const list = yield* known(peers, (one) => one.length === 1)
      expect(connected(list)).toEqual([2])
      expect(fake.calls).toEqual([])
      expect((yield* Effect.flip(peers.link(1))).message).toBe("node 1: it is this node itself")
    }),
  )

  it.scopedLive("go on over another address of a node when the one in use is closed", () =>
    Effect.gen(function* () {
      const first = yield* mortal(2)
      const other = yield* node(2)
      const peers = yield* peersOf(1, [first.address])
      yield* peers.link(2)
      yield* peers.wanted([{ epoch: 2, address: other.address }])
      yield* first.end
      const list = yield* known(peers, (one) =>
        one.some(({ address, connectedSince }) => connectedSince !== null && address === renderHostPort(other.address)),
      )
      expect(connected(list)).toEqual([2])
    }),
  )

  it.scopedLive("are made again when the node comes back in another life", () =>
    Effect.gen(function* () {
      const first = yield* mortal(2, { hold: true })
      const peers = yield* peersOf(1, [first.address], { waitMs: 100 })
      yield* known(peers, (one) => connected(one).includes(2))
      const sessions = yield* peers.link(2)
      const waiting = yield* Effect.fork(
        Effect.flip(Stream.runDrain(sessions.watch({ conversationId: ConversationId.make(1), after: null }))),
      )
      yield* first.end
      expect((yield* Fiber.join(waiting))._tag).toMatch(/OwnerGone|NotFound/)
      yield* known(peers, (one) => connected(one).length === 0)
      yield* node(5, { port: first.address.port })
      yield* known(peers, (one) => connected(one).includes(5))
      expect((yield* (yield* peers.link(5)).tree).name).toBe("node 5")
      const gone = yield* Effect.flip(peers.link(2))
      expect(gone.message).toBe("node 2: no address of it is known")
    }),
  )

  it.scopedLive("that are being made are waited for by the calls that need them", () =>
    Effect.gen(function* () {
      const lists = yield* Queue.unbounded<ReadonlyArray<HostPort>>()
      const peers = yield* peersOf(1, [], { discovered: Stream.fromQueue(lists), waitMs: 10_000 })
      const calls = yield* Effect.fork(
        Effect.forEach([1, 2, 3], () => Effect.flatMap(peers.link(2), (sessions) => sessions.open(open)), {
          concurrency: 3,
        }),
      )
      const { address } = yield* node(2)
      yield* Queue.offer(lists, [address])
      expect(yield* Fiber.join(calls)).toHaveLength(3)
    }),
  )

  it.scopedLive("that cannot be made are refused in time, with what is known", () =>
    Effect.gen(function* () {
      const { address, end } = yield* mortal(2)
      yield* end
      const peers = yield* peersOf(1, [], { waitMs: 50 })
      expect((yield* Effect.flip(peers.link(2))).message).toBe("node 2: no address of it is known")
      yield* peers.wanted([{ epoch: 2, address }])
      yield* known(peers, ([one]) => one?.lastError !== null && one?.lastError !== undefined)
      expect((yield* Effect.flip(peers.link(2))).message).toBe(
        `node 2: ${renderHostPort(address)}: nobody listens there (ECONNREFUSED)`,
      )
      yield* node(3, { port: address.port })
      yield* known(peers, (one) => connected(one).includes(3))
      expect((yield* Effect.flip(peers.link(2))).message).toBe("node 2: at its address there is node 3 now")
    }),
  )

  it.scopedLive("to addresses that are named no more stay until they end, and are not made again", () =>
    Effect.gen(function* () {
      const two = yield* mortal(2)
      const peers = yield* peersOf(1, [])
      yield* peers.wanted([{ epoch: 2, address: two.address }])
      const sessions = yield* peers.link(2)
      yield* peers.wanted([])
      expect((yield* sessions.tree).name).toBe("node 2")
      yield* two.end
      expect(yield* known(peers, (list) => list.length === 0)).toEqual([])
    }),
  )

  it.scopedLive("to a node with another secret are refused on both sides, which say so once", () =>
    Effect.gen(function* () {
      const told = yield* Queue.unbounded<string>()
      const logger = Logger.make(({ message, logLevel }) => {
        if (logLevel.label === "WARN") Queue.unsafeOffer(told, String(message))
      })
      const other = Redacted.make("another secret, long enough")
      yield* Effect.gen(function* () {
        const { address } = yield* node(2, { secret: other })
        const peers = yield* peersOf(1, [address])
        const shared = "SUPER_PI_CLUSTER_SECRET must be the same on every node"
        const lines = [yield* Queue.take(told), yield* Queue.take(told)].sort()
        expect(lines).toEqual([
          `a connection was turned away: 127.0.0.1: it does not know our cluster secret; ${shared}`,
          `no connection to a node: ${renderHostPort(address)}: it does not accept our cluster secret; ${shared}`,
        ])
        // Calls make it try again at once; nothing more is said about it.
        const attempts = yield* Deferred.make<void>()
        let count = 0
        yield* Effect.forkScoped(
          Stream.runForEach(peers.changes, () => (++count < 4 ? Effect.void : Deferred.succeed(attempts, undefined))),
        )
        yield* peers.wanted([{ epoch: 2, address }])
        yield* Effect.forkScoped(Effect.ignore(peers.link(2)))
        yield* Deferred.await(attempts)
        expect(yield* Queue.size(told)).toBe(0)
      }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      expect(Redacted.value(secret)).not.toBe(Redacted.value(other))
    }),
  )

  it.scopedLive("to nodes of another system are left alone without a word", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const logger = Logger.make(({ message, logLevel }) => {
        if (logLevel.label === "WARN") warnings.push(String(message))
      })
      yield* Effect.gen(function* () {
        const { address } = yield* node(2, { self: identity(2, { name: "demo@b" }) })
        const peers = yield* peersOf(1, [address], { onlyNames: "super_pi" })
        const [one] = yield* known(peers, ([first]) => first !== undefined && first.lastError !== null)
        expect(one?.lastError).toContain("its name belongs to another system")
      }).pipe(Effect.provide(Logger.replace(Logger.defaultLogger, logger)))
      expect(warnings).toEqual([])
    }),
  )
})
