/**
 * Nodes of one network find each other by calling out: each sends who it is to a multicast group and as a broadcast, and lists whom it heard
 * of late. Owner of its UDP socket, which is opened anew when it breaks.
 */
import { randomBytes } from "node:crypto"
import { createSocket, type Socket } from "node:dgram"
import { networkInterfaces } from "node:os"
import { Clock, Effect, Queue, Redacted, Schedule, type Scope, Stream } from "effect"
import { errorCode } from "../../../domain/error-code.ts"
import type { HostPort } from "../../../domain/host-port.ts"
import type { Announced, Discovery } from "./discovery.ts"
import { type Listener, makeListener, renderCall } from "./gossip-datagram.ts"

export interface GossipOptions {
  readonly secret: Redacted.Redacted<string>
  /** UDP, the same on all nodes. */
  readonly port: number
  /** Only nodes whose name begins like this; null: all. */
  readonly onlyNames: string | null
  /** Between two calls, in milliseconds. Default 1,500. */
  readonly everyMs?: number
  /** A node that is not heard for so long is listed no more, in milliseconds. Default 15,000. */
  readonly forgetMs?: number
  /** IPv4 address of the one interface to use; default all of them. */
  readonly interface?: string
}

const defaultEveryMs = 1500
const defaultForgetMs = 15_000
/** A group of the administratively scoped range: routers do not pass it on. */
const group = "239.255.45.92"
const broadcast = "255.255.255.255"
/** Pause before a socket that broke is opened again, in milliseconds. */
const reopenMs = 1000
/** Datagrams that wait to be read; more are dropped. */
const maxWaiting = 1024
/** Nodes that are listed. */
const maxHeard = 1000

const codeOf = (cause: unknown): string => errorCode(cause) || String(cause)

const interfaces = (options: GossipOptions): ReadonlyArray<string> =>
  options.interface !== undefined
    ? [options.interface]
    : Object.values(networkInterfaces()).flatMap((addresses = []) =>
        addresses.filter((one) => one.family === "IPv4").map((one) => one.address),
      )

/** A bound socket that hears the group on every interface that can, and broadcasts. Fails with the code of a system error. */
const openSocket = (
  options: GossipOptions,
  received: Queue.Queue<Uint8Array>,
  broken: (code: string) => void,
): Effect.Effect<Socket, string, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.async<Socket, string>((resume) => {
      const socket = createSocket({ type: "udp4", reuseAddr: true })
      let isOpen = false
      const failed = (cause: unknown) => {
        if (!isOpen) socket.close()
        resume(Effect.fail(codeOf(cause)))
      }
      socket.on("error", (cause) => {
        if (isOpen) broken(codeOf(cause))
        else failed(cause)
      })
      socket.on("message", (datagram) => Queue.unsafeOffer(received, datagram))
      socket.bind(options.port, () => {
        for (const one of interfaces(options)) {
          try {
            socket.addMembership(group, one)
          } catch {
            // No multicast on this interface: broadcasts are left.
          }
        }
        try {
          socket.setMulticastTTL(1)
          socket.setMulticastLoopback(true)
          socket.setBroadcast(true)
          if (options.interface !== undefined) socket.setMulticastInterface(options.interface)
          isOpen = true
          resume(Effect.succeed(socket))
        } catch (cause) {
          failed(cause)
        }
      })
      return Effect.sync(() => socket.close())
    }),
    (socket) => Effect.sync(() => socket.close()),
  )

/** Whether it went out at all; a network without a route for one of the two is an ordinary one. */
const send = (socket: Socket, port: number, datagram: Uint8Array): Effect.Effect<boolean> =>
  Effect.map(
    Effect.forEach([group, broadcast], (target) =>
      Effect.async<boolean>((resume) => {
        socket.send(datagram, port, target, (error) => resume(Effect.succeed(error === null)))
      }),
    ),
    (sent) => sent.includes(true),
  )

interface Heard {
  readonly address: HostPort
  readonly until: number
}

export const gossip = (options: GossipOptions, self: Announced): Discovery => ({
  strategy: "gossip",
  peers: Stream.unwrapScoped(
    Effect.gen(function* () {
      const secret = Redacted.value(options.secret)
      const listener = makeListener(secret)
      const heard = new Map<string, Heard>()
      const received = yield* Queue.dropping<Uint8Array>(maxWaiting)
      const lists = yield* Queue.sliding<ReadonlyArray<HostPort>>(1)
      const list = Effect.suspend(() =>
        Queue.offer(
          lists,
          [...heard.values()].map((one) => one.address),
        ),
      )

      const hear = Effect.flatMap(Queue.take(received), (datagram) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const caller = admit(listener, datagram, now, options, self)
          if (caller === null || (heard.size >= maxHeard && !heard.has(caller.instance))) return Effect.void
          const isNew = !heard.has(caller.instance)
          heard.set(caller.instance, { address: caller.address, until: now + (options.forgetMs ?? defaultForgetMs) })
          return isNew ? list : Effect.void
        }),
      )
      const forget = Effect.flatMap(Clock.currentTimeMillis, (now) => {
        const late = [...heard].filter(([, one]) => one.until <= now)
        for (const [instance] of late) heard.delete(instance)
        return late.length === 0 ? Effect.void : list
      })

      let told: string | null = null
      const complain = (detail: string) =>
        Effect.suspend(() => {
          if (told === detail) return Effect.void
          told = detail
          return Effect.logWarning(`gossip on UDP port ${options.port}: ${detail}; nodes may not find each other`)
        })
      const call = (socket: Socket) =>
        Effect.gen(function* () {
          const nonce = randomBytes(16).toString("hex")
          const datagram = renderCall(secret, self, yield* Clock.currentTimeMillis, nonce)
          if (yield* send(socket, options.port, datagram)) told = null
          else yield* complain("nothing can be sent")
        })
      const life = Effect.scoped(
        Effect.gen(function* () {
          let fault: string | null = null
          const socket = yield* openSocket(options, received, (code) => {
            fault = code
          })
          const check = Effect.suspend(() => (fault === null ? Effect.void : Effect.fail(fault)))
          yield* Effect.zipRight(check, Effect.zipRight(call(socket), forget)).pipe(
            Effect.repeat(Schedule.spaced(options.everyMs ?? defaultEveryMs)),
          )
        }),
      )
      yield* Effect.forkScoped(Effect.forever(hear))
      yield* Effect.forkScoped(Effect.forever(Effect.zipRight(Effect.catchAll(life, complain), Effect.sleep(reopenMs))))
      return Stream.concat(Stream.make([]), Stream.fromQueue(lists))
    }),
  ),
})

const admit = (
  listener: Listener,
  datagram: Uint8Array,
  now: number,
  { onlyNames }: GossipOptions,
  self: Announced,
): Announced | null => {
  const caller = listener.read(datagram, now)
  if (caller === null || caller.instance === self.instance) return null
  return onlyNames === null || caller.name.startsWith(onlyNames) ? caller : null
}
