/**
 * Addresses from DNS, asked for again and again.
 */
import { lookup, Resolver } from "node:dns/promises"
import { Data, Effect, Schedule, Stream } from "effect"
import { errorCode } from "../../../domain/error-code.ts"
import { type HostPort, renderHostPort } from "../../../domain/host-port.ts"

/** No address for a name. */
export class DnsFault extends Data.TaggedError("DnsFault")<{ readonly name: string; readonly code: string }> {
  override get message() {
    return `${this.name}: no address (${this.code})`
  }
}

/** What is asked of the name service; each fails with a system error. */
export interface Dns {
  readonly resolve4: (name: string) => Promise<ReadonlyArray<string>>
  readonly resolve6: (name: string) => Promise<ReadonlyArray<string>>
  readonly resolveSrv: (name: string) => Promise<ReadonlyArray<{ readonly name: string; readonly port: number }>>
  /** By the system's own rules: its hosts file and search domains. */
  readonly lookup: (name: string) => Promise<ReadonlyArray<string>>
}

/** The name servers of the system, or the given ones (`address` or `address:port`). */
export const makeDns = (servers?: ReadonlyArray<string>): Dns => {
  const resolver = new Resolver({ timeout: 2000, tries: 2 })
  if (servers !== undefined) resolver.setServers(servers)
  return {
    resolve4: (name) => resolver.resolve4(name),
    resolve6: (name) => resolver.resolve6(name),
    resolveSrv: (name) => resolver.resolveSrv(name),
    lookup: async (name) => (await lookup(name, { all: true })).map((one) => one.address),
  }
}

const asked = <A>(name: string, ask: () => Promise<A>): Effect.Effect<A, DnsFault> =>
  Effect.tryPromise({ try: ask, catch: (cause) => new DnsFault({ name, code: errorCode(cause) || "unknown" }) })

/** The addresses of a name, IPv4 and IPv6; by the system's rules where the name servers have none. */
export const addressesOf = (dns: Dns, name: string, port: number): Effect.Effect<ReadonlyArray<HostPort>, DnsFault> => {
  const nothing = (fault: DnsFault) => Effect.succeed({ hosts: [] as ReadonlyArray<string>, fault })
  const found = (hosts: ReadonlyArray<string>) => ({ hosts, fault: null })
  const family = (ask: () => Promise<ReadonlyArray<string>>) =>
    Effect.catchAll(Effect.map(asked(name, ask), found), nothing)
  return Effect.gen(function* () {
    const [four, six] = yield* Effect.all([family(() => dns.resolve4(name)), family(() => dns.resolve6(name))], {
      concurrency: 2,
    })
    const resolved = [...four.hosts, ...six.hosts]
    const hosts =
      resolved.length > 0
        ? resolved
        : yield* Effect.mapError(
            asked(name, () => dns.lookup(name)),
            (fault) => four.fault ?? fault,
          )
    return hosts.map((host) => ({ host, port }))
  })
}

/** The targets of a service record, with their own ports. */
export const servicesOf = (dns: Dns, name: string): Effect.Effect<ReadonlyArray<HostPort>, DnsFault> =>
  Effect.map(
    asked(name, () => dns.resolveSrv(name)),
    (records) => records.map((one) => ({ host: one.name, port: one.port })),
  )

/** Asks each `pollMs` milliseconds, and tells each list that differs from the last one. A failure is logged once until something changes. */
export const polled = (
  ask: Effect.Effect<ReadonlyArray<HostPort>, DnsFault>,
  pollMs: number,
): Stream.Stream<ReadonlyArray<HostPort>> =>
  Stream.suspend(() => {
    let last: string | null = null
    let told: string | null = null
    const fresh = Effect.map(ask, (list) => {
      told = null
      const sorted = [...list].sort((a, b) => (renderHostPort(a) < renderHostPort(b) ? -1 : 1))
      const text = sorted.map(renderHostPort).join(" ")
      if (text === last) return []
      last = text
      return [sorted]
    })
    const tolerant = Effect.catchAll(fresh, ({ message }) =>
      Effect.suspend(() => {
        const log = told === message ? Effect.void : Effect.logWarning(`nodes are not found: ${message}`)
        told = message
        return Effect.as(log, [])
      }),
    )
    return Stream.flattenIterables(Stream.repeatEffectWithSchedule(tolerant, Schedule.spaced(pollMs)))
  })
