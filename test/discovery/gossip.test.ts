/** Nodes that call out to their network: real sockets on loopback, and what a listener makes of any bytes. */
import { createSocket } from "node:dgram"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Queue, Redacted, Scope, Stream } from "effect"
import * as fc from "fast-check"
import { type HostPort, renderHostPort } from "../../src/domain/host-port.ts"
import { type GossipOptions, gossip } from "../../src/supervisors/cluster/discovery/gossip.ts"
import {
  makeListener,
  maxDatagram,
  renderCall,
  windowMs,
} from "../../src/supervisors/cluster/discovery/gossip-datagram.ts"

const secret = "a secret of the tests, long enough"
const self = (id: number, name = `super_pi@node-${id}`) => ({
  name,
  address: { host: `10.0.0.${id}`, port: 45_893 },
  instance: `instance ${id}`,
})

/** A UDP port that is free at this moment. */
const freePort = Effect.async<number>((resume) => {
  const socket = createSocket("udp4")
  socket.bind(0, "127.0.0.1", () => {
    const { port } = socket.address()
    socket.close(() => resume(Effect.succeed(port)))
  })
})

const listen = (port: number, id: number, rest: Partial<GossipOptions> & { readonly name?: string } = {}) =>
  Effect.gen(function* () {
    const lists = yield* Queue.unbounded<ReadonlyArray<HostPort>>()
    const options = {
      secret: Redacted.make(secret),
      port,
      onlyNames: null,
      everyMs: 20,
      interface: "127.0.0.1",
      ...rest,
    }
    yield* gossip(options, self(id, rest.name)).peers.pipe(
      Stream.runForEach((list) => Queue.offer(lists, list)),
      Effect.forkScoped,
    )
    return lists
  })

/** The list once it has so many nodes. */
const until = (lists: Queue.Dequeue<ReadonlyArray<HostPort>>, count: number): Effect.Effect<ReadonlyArray<string>> =>
  Effect.flatMap(Queue.take(lists), (list) =>
    list.length === count ? Effect.succeed(list.map(renderHostPort).sort()) : until(lists, count),
  )

describe("gossip", () => {
  it.scopedLive("lists every other node that calls under the same secret, and forgets one that is silent", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      const one = yield* listen(port, 1, { forgetMs: 500 })
      const two = yield* listen(port, 2)
      const third = yield* Scope.make()
      yield* Scope.extend(listen(port, 3), third)
      expect(yield* until(one, 2)).toEqual(["10.0.0.2:45893", "10.0.0.3:45893"])
      expect(yield* until(two, 2)).toEqual(["10.0.0.1:45893", "10.0.0.3:45893"])
      yield* Scope.close(third, Exit.void)
      expect(yield* until(one, 1)).toEqual(["10.0.0.2:45893"])
    }),
  )

  it.scopedLive("does not hear another secret, or names of another system", () =>
    Effect.gen(function* () {
      const port = yield* freePort
      yield* listen(port, 2, { secret: Redacted.make("another secret, long enough") })
      yield* listen(port, 3, { name: "demo@node-3" })
      const one = yield* listen(port, 1, { onlyNames: "super_pi" })
      yield* listen(port, 4)
      expect(yield* until(one, 1)).toEqual(["10.0.0.4:45893"])
      expect(yield* Queue.size(one)).toBe(0)
    }),
  )
})

describe("a listener", () => {
  const now = 1_800_000_000_000
  const call = (at = now, nonce = "ab".repeat(16), by = self(1)) => renderCall(secret, by, at, nonce)

  it("hears a call, once", () => {
    const listener = makeListener(secret)
    expect(listener.read(call(), now)).toEqual(self(1))
    expect(listener.read(call(), now + 1)).toBeNull()
    expect(listener.read(call(now, "cd".repeat(16)), now + 1)).toEqual(self(1))
  })

  it("hears nothing stale, nothing from the future and nothing again after the window", () => {
    const listener = makeListener(secret)
    expect(listener.read(call(now - windowMs - 1), now)).toBeNull()
    expect(listener.read(call(now + windowMs + 1), now)).toBeNull()
    const ahead = call(now + windowMs)
    expect(listener.read(ahead, now)).toEqual(self(1))
    for (let later = now; later <= now + 3 * windowMs; later += 1000) {
      expect(listener.read(ahead, later)).toBeNull()
      listener.read(call(later, later.toString(16).padStart(32, "0")), later)
    }
  })

  it("hears nothing under another secret and nothing that was touched", () => {
    expect(makeListener("another").read(call(), now)).toBeNull()
    const whole = call()
    for (let index = 0; index < whole.length; index++) {
      const touched = Buffer.from(whole)
      touched[index] = (touched[index] ?? 0) ^ 1
      expect(makeListener(secret).read(touched, now)).toBeNull()
    }
    for (let length = 0; length < whole.length; length++) {
      expect(makeListener(secret).read(whole.subarray(0, length), now)).toBeNull()
    }
  })

  it("makes nothing of any bytes, whoever signed them, unless they are a call", () => {
    const listener = makeListener(secret)
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: maxDatagram + 50 }), (bytes) => {
        expect(listener.read(bytes, now)).toBeNull()
      }),
    )
    // Values of the right shape with anything in them: a call is read as it was made, or not at all.
    fc.assert(
      fc.property(
        fc.record({
          name: fc.string({ maxLength: 300 }),
          host: fc.string(),
          port: fc.integer(),
          instance: fc.string(),
        }),
        fc.integer({ min: now - 2 * windowMs, max: now + 2 * windowMs }),
        ({ name, host, port, instance }, at) => {
          const by = { name, address: { host, port }, instance }
          const heard = makeListener(secret).read(renderCall(secret, by, at, "ef".repeat(16)), now)
          if (heard !== null) expect(heard).toEqual(by)
        },
      ),
    )
  })
})
