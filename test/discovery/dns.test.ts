/** Nodes that are found by DNS, with a small name server on loopback. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Logger, Queue, Stream } from "effect"
import type { HostPort } from "../../src/domain/host-port.ts"
import { renderHostPort } from "../../src/domain/host-port.ts"
import { type Dns, makeDns } from "../../src/supervisors/cluster/discovery/dns.ts"
import { dnsPoll } from "../../src/supervisors/cluster/discovery/dnspoll.ts"
import { candidateNames, kubernetesDns } from "../../src/supervisors/cluster/discovery/kubernetes.ts"
import { staticHosts } from "../../src/supervisors/cluster/discovery/static.ts"
import { startDns } from "./dns-server.ts"

/** The name servers alone: nothing of this machine's own files. */
const only = (server: string): Dns => ({
  ...makeDns([server]),
  lookup: () => Promise.reject(Object.assign(new Error("no"), { code: "ENOTFOUND" })),
})

const next = (lists: Queue.Dequeue<ReadonlyArray<HostPort>>) =>
  Effect.map(Queue.take(lists), (list) => list.map(renderHostPort))

const follow = (peers: Stream.Stream<ReadonlyArray<HostPort>>) =>
  Effect.gen(function* () {
    const lists = yield* Queue.unbounded<ReadonlyArray<HostPort>>()
    yield* Effect.forkScoped(Stream.runForEach(peers, (list) => Queue.offer(lists, list)))
    return lists
  })

describe("dnspoll", () => {
  it.scopedLive("lists the IPv4 and IPv6 addresses of a name, and again whenever they change", () =>
    Effect.gen(function* () {
      const dns = yield* startDns({ "nodes.test": ["10.0.0.2", "10.0.0.1", "fd00::7"] })
      const options = { query: "nodes.test", port: 45_893, pollMs: 5 }
      const lists = yield* follow(dnsPoll(options, only(dns.server)).peers)
      expect(yield* next(lists)).toEqual(["10.0.0.1:45893", "10.0.0.2:45893", "[fd00::7]:45893"])
      dns.set({ "nodes.test": ["10.0.0.2"] })
      expect(yield* next(lists)).toEqual(["10.0.0.2:45893"])
      dns.set({ "nodes.test": ["10.0.0.3", "10.0.0.2"] })
      expect(yield* next(lists)).toEqual(["10.0.0.2:45893", "10.0.0.3:45893"])
    }),
  )

  it.scopedLive("reads ports from service records", () =>
    Effect.gen(function* () {
      const dns = yield* startDns({ "_super-pi._tcp.nodes.test": ["a.nodes.test:1001", "b.nodes.test:1002"] })
      const options = { query: "_super-pi._tcp.nodes.test", port: 1, pollMs: 5 }
      const lists = yield* follow(dnsPoll(options, only(dns.server)).peers)
      expect(yield* next(lists)).toEqual(["a.nodes.test:1001", "b.nodes.test:1002"])
    }),
  )

  it.scopedLive("says once that a name is missing, keeps what it found, and goes on when the name is back", () =>
    Effect.gen(function* () {
      const warnings: Array<string> = []
      const logger = Logger.make(({ message }) => void warnings.push(String(message)))
      const dns = yield* startDns({ "nodes.test": ["10.0.0.1"] })
      const options = { query: "nodes.test", port: 1, pollMs: 2 }
      const lists = yield* Effect.provide(
        follow(dnsPoll(options, only(dns.server)).peers),
        Logger.replace(Logger.defaultLogger, logger),
      )
      expect(yield* next(lists)).toEqual(["10.0.0.1:1"])
      dns.set({})
      const before = dns.asked.length
      yield* Effect.yieldNow().pipe(Effect.repeat({ until: () => dns.asked.length > before + 10 }))
      expect(yield* Queue.size(lists)).toBe(0)
      dns.set({ "nodes.test": ["10.0.0.1", "10.0.0.9"] })
      expect(yield* next(lists)).toEqual(["10.0.0.1:1", "10.0.0.9:1"])
      expect(warnings).toEqual(["nodes are not found: nodes.test: no address (ENOTFOUND)"])
    }),
  )

  it.scopedLive("asks the system where the name servers know nothing", () =>
    Effect.gen(function* () {
      const dns = yield* startDns({})
      const system: Dns = { ...makeDns([dns.server]), lookup: () => Promise.resolve(["192.0.2.1"]) }
      const lists = yield* follow(dnsPoll({ query: "nodes", port: 1, pollMs: 5 }, system).peers)
      expect(yield* next(lists)).toEqual(["192.0.2.1:1"])
    }),
  )
})

describe("kubernetes_dns", () => {
  const pod = {
    namespace: "agents",
    resolvConf:
      "nameserver 10.96.0.10\nsearch agents.svc.cluster.local svc.cluster.local corp.example\noptions ndots:5\n",
  }

  it("tries the name, then that of the pod's namespace, then the search domains", () => {
    expect(candidateNames("super-pi", pod)).toEqual([
      "super-pi",
      "super-pi.agents.svc.cluster.local",
      "super-pi.svc.cluster.local",
      "super-pi.corp.example",
    ])
    expect(candidateNames("super-pi", { namespace: "", resolvConf: "" })).toEqual(["super-pi"])
  })

  it.scopedLive("lists the pods behind a headless Service", () =>
    Effect.gen(function* () {
      const dns = yield* startDns({ "super-pi.agents.svc.cluster.local": ["10.1.0.4", "10.1.0.5"] })
      const options = { service: "super-pi", port: 45_893, pollMs: 5 }
      const lists = yield* follow(kubernetesDns(options, only(dns.server), pod).peers)
      expect(yield* next(lists)).toEqual(["10.1.0.4:45893", "10.1.0.5:45893"])
      dns.set({ "super-pi.agents.svc.cluster.local": ["10.1.0.5", "10.1.0.6"] })
      expect(yield* next(lists)).toEqual(["10.1.0.5:45893", "10.1.0.6:45893"])
    }),
  )
})

describe("a static list", () => {
  it.scopedLive("is told once and never ends", () =>
    Effect.gen(function* () {
      const hosts = [{ host: "10.0.0.1", port: 1 }]
      const seen: Array<ReadonlyArray<HostPort>> = []
      const fiber = yield* Effect.fork(
        Stream.runForEach(staticHosts(hosts).peers, (list) => Effect.sync(() => seen.push(list))),
      )
      yield* Effect.yieldNow().pipe(Effect.repeatN(50))
      expect(seen).toEqual([hosts])
      expect(fiber.unsafePoll()).toBeNull()
      yield* Fiber.interrupt(fiber)
    }),
  )
})
