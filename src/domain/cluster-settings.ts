/**
 * How a node takes part in a cluster, read from the environment. Pure: files and addresses of the machine are looked up by whoever uses them.
 * Faults name the variable and what was expected, and never show a secret.
 */
import { Either, Redacted } from "effect"
import { type HostPort, parseHostPort, renderHostPort } from "./host-port.ts"
import { InvalidSetting } from "./invalid-setting.ts"
import { shown } from "./shown.ts"

/** How nodes find each other; members that the database knows are tried beside what discovery finds. */
export type DiscoverySettings =
  | { readonly strategy: "none" }
  | { readonly strategy: "static"; readonly hosts: ReadonlyArray<HostPort> }
  | { readonly strategy: "dnspoll"; readonly query: string; readonly port: number; readonly pollMs: number }
  | { readonly strategy: "kubernetes_dns"; readonly service: string; readonly port: number; readonly pollMs: number }
  | { readonly strategy: "gossip"; readonly secret: Redacted.Redacted<string>; readonly port: number }

/** Paths of PEM files. Both sides of a connection show a certificate of `ca`; host names are not checked. */
export interface ClusterTls {
  readonly cert: string
  readonly key: string
  readonly ca: string
}

export interface ClusterSettings {
  readonly discovery: DiscoverySettings
  /** What nodes prove to each other. Null only where the strategy is `none` and none was given. */
  readonly secret: Redacted.Redacted<string> | null
  /** Name of this node; null: see {@link nodeNameAt}. */
  readonly name: string | null
  /** The part of default names before `@`. Default `super_pi`. */
  readonly basename: string
  /** Only nodes whose name begins like this belong to the system; null: every node that knows the secret. */
  readonly onlyNames: string | null
  /** Where to listen for other nodes; `host` null: on every address of the machine. */
  readonly listen: { readonly host: string | null; readonly port: number }
  /** Where other nodes reach this one; null: the host of `name`, else the listening host, else an address of the machine. */
  readonly advertise: HostPort | null
  readonly tls: ClusterTls | null
  /** How long running turns may go on after SIGTERM, in milliseconds. Default 30,000. */
  readonly drainMs: number
}

/** The port of node-to-node connections where none is said. */
export const defaultClusterPort = 45_893
const defaultGossipPort = 45_892
const defaultPollMs = 5_000
const defaultDrainSeconds = 30
/** Characters that a secret must have. */
const minSecret = 16
const defaultBasename = "super_pi"

const strategies = ["none", "static", "dnspoll", "kubernetes_dns", "gossip"] as const
type Strategy = (typeof strategies)[number]

type Env = Readonly<Record<string, string | undefined>>
type Read<A> = Either.Either<A, InvalidSetting>

const fault = (variable: string, expected: string, got: string): Read<never> =>
  Either.left(new InvalidSetting({ variable, expected, got }))

/** The variable as it counts: an empty one is none. */
const text = (env: Env, variable: string): string | null => env[variable]?.trim() || null

/** The first of these variables that is set, with its name. */
const firstOf = (
  env: Env,
  ...variables: ReadonlyArray<string>
): { readonly variable: string; readonly value: string } | null => {
  for (const variable of variables) {
    const value = text(env, variable)
    if (value !== null) return { variable, value }
  }
  return null
}

const number = (
  env: Env,
  variable: string,
  otherwise: number,
  min: number,
  max: number,
  what: string,
): Read<number> => {
  const value = text(env, variable)
  if (value === null) return Either.right(otherwise)
  const parsed = /^\d{1,9}(\.\d{1,3})?$/.test(value) ? Number(value) : Number.NaN
  const fits = parsed >= min && parsed <= max && (what === "seconds" || Number.isInteger(parsed))
  return fits ? Either.right(parsed) : fault(variable, `${what} from ${min} to ${max}`, shown(value))
}

const port = (env: Env, variable: string, otherwise: number): Read<number> =>
  number(env, variable, otherwise, 0, 65_535, "a port")

const hostPort = (variable: string, value: string, otherwise: number): Read<HostPort> => {
  const parsed = parseHostPort(value, otherwise)
  return parsed === null
    ? fault(variable, "a host, host:port, name@host or [IPv6]:port", shown(value))
    : Either.right(parsed)
}

const secret = (env: Env, ...variables: ReadonlyArray<string>): Read<Redacted.Redacted<string> | null> => {
  const found = firstOf(env, ...variables)
  if (found === null) return Either.right(null)
  return found.value.length < minSecret
    ? fault(found.variable, `a secret of at least ${minSecret} characters`, `${found.value.length}`)
    : Either.right(Redacted.make(found.value))
}

const strategyOf = (env: Env): Read<Strategy> => {
  const value = text(env, "SUPER_PI_CLUSTER_STRATEGY") ?? "none"
  const name = value === "epmd" ? "static" : value
  const known = strategies.find((one) => one === name)
  return known === undefined
    ? fault("SUPER_PI_CLUSTER_STRATEGY", `one of ${strategies.join(", ")}`, shown(value))
    : Either.right(known)
}

const required = (env: Env, variable: string, what: string): Read<string> => {
  const value = text(env, variable)
  return value === null ? fault(variable, what, "nothing") : Either.right(value)
}

const dnsName = (env: Env, variable: string, what: string): Read<string> =>
  Either.flatMap(required(env, variable, what), (value) =>
    /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$/.test(value)
      ? Either.right(value)
      : fault(variable, what, shown(value)),
  )

const hostList = (env: Env, otherwise: number): Read<ReadonlyArray<HostPort>> =>
  Either.flatMap(required(env, "SUPER_PI_CLUSTER_HOSTS", "a comma-separated list of hosts"), (value) =>
    Either.all(
      value
        .split(",")
        .map((one) => one.trim())
        .filter((one) => one !== "")
        .map((one) => hostPort("SUPER_PI_CLUSTER_HOSTS", one, otherwise)),
    ),
  )

const discoveryOf = (
  env: Env,
  strategy: Strategy,
  peerPort: number,
  clusterSecret: Redacted.Redacted<string> | null,
): Read<DiscoverySettings> =>
  Either.gen(function* () {
    const pollMs = yield* number(env, "SUPER_PI_CLUSTER_POLL_MS", defaultPollMs, 100, 3_600_000, "milliseconds")
    switch (strategy) {
      case "none":
        return { strategy }
      case "static":
        return { strategy, hosts: yield* hostList(env, peerPort) }
      case "dnspoll": {
        const query = yield* dnsName(env, "SUPER_PI_CLUSTER_DNS_QUERY", "the DNS name that lists all nodes")
        return { strategy, query, port: peerPort, pollMs }
      }
      case "kubernetes_dns": {
        const service = yield* dnsName(env, "SUPER_PI_CLUSTER_K8S_SERVICE", "the name of the headless Service")
        return { strategy, service, port: peerPort, pollMs }
      }
      case "gossip": {
        const own = yield* secret(env, "SUPER_PI_CLUSTER_GOSSIP_SECRET")
        const gossipPort = yield* port(env, "SUPER_PI_CLUSTER_GOSSIP_PORT", defaultGossipPort)
        const shared = own ?? clusterSecret
        if (shared === null) return yield* fault("SUPER_PI_CLUSTER_GOSSIP_SECRET", "a secret", "nothing")
        return { strategy, secret: shared, port: gossipPort }
      }
    }
  })

const tlsOf = (env: Env): Read<ClusterTls | null> => {
  const names = ["CERT", "KEY", "CA"].map((part) => `SUPER_PI_CLUSTER_TLS_${part}`)
  const [cert = null, key = null, ca = null] = names.map((name) => text(env, name))
  if (cert !== null && key !== null && ca !== null) return Either.right({ cert, key, ca })
  const missing = names.find((name) => text(env, name) === null)
  return missing === undefined || (cert ?? key ?? ca) === null
    ? Either.right(null)
    : fault(missing, "a path, since the others of SUPER_PI_CLUSTER_TLS_CERT, _KEY and _CA are set", "nothing")
}

const namesOf = (env: Env): Read<Pick<ClusterSettings, "name" | "basename" | "onlyNames">> => {
  const given = firstOf(env, "SUPER_PI_NODE_NAME", "RELEASE_NODE")
  if (given !== null && !/^[\w.@:[\]-]{1,200}$/.test(given.value)) {
    return fault(given.variable, "a name of letters, digits and . _ - @ : [ ], at most 200", shown(given.value))
  }
  const onlyNames = text(env, "SUPER_PI_CLUSTER_NODE_BASENAME")
  if (onlyNames !== null && !/^[\w.-]{1,100}$/.test(onlyNames)) {
    return fault("SUPER_PI_CLUSTER_NODE_BASENAME", "letters, digits and . _ -, at most 100", shown(onlyNames))
  }
  if (given !== null && onlyNames !== null && !given.value.startsWith(onlyNames)) {
    const expected = `a name that begins with SUPER_PI_CLUSTER_NODE_BASENAME ("${onlyNames}")`
    return fault(given.variable, expected, shown(given.value))
  }
  return Either.right({ name: given?.value ?? null, basename: onlyNames ?? defaultBasename, onlyNames })
}

/** What the environment says about the cluster; the first variable that is wrong. */
export const clusterSettings = (env: Env): Either.Either<ClusterSettings, InvalidSetting> =>
  Either.gen(function* () {
    const strategy = yield* strategyOf(env)
    const shared = yield* secret(env, "SUPER_PI_CLUSTER_SECRET", "RELEASE_COOKIE")
    if (strategy !== "none" && shared === null) {
      return yield* fault("SUPER_PI_CLUSTER_SECRET", `a secret of at least ${minSecret} characters`, "nothing")
    }
    const listenPort = yield* port(env, "SUPER_PI_CLUSTER_PORT", defaultClusterPort)
    const host = text(env, "SUPER_PI_CLUSTER_HOST")
    const listen = host === null ? null : yield* hostPort("SUPER_PI_CLUSTER_HOST", host, listenPort)
    const peerPort = listenPort === 0 ? defaultClusterPort : listenPort
    const discovery = yield* discoveryOf(env, strategy, peerPort, shared)
    const advertised = text(env, "SUPER_PI_CLUSTER_ADVERTISE")
    const advertise = advertised === null ? null : yield* hostPort("SUPER_PI_CLUSTER_ADVERTISE", advertised, peerPort)
    const seconds = yield* number(env, "SUPER_PI_DRAIN_SECONDS", defaultDrainSeconds, 0, 3_600, "seconds")
    return {
      discovery,
      secret: shared,
      ...(yield* namesOf(env)),
      listen: listen ?? { host: null, port: listenPort },
      advertise,
      tls: yield* tlsOf(env),
      drainMs: seconds * 1000,
    }
  })

/** The name of a node that other nodes reach at `address`. */
export const nodeNameAt = (settings: Pick<ClusterSettings, "name" | "basename">, address: HostPort): string =>
  settings.name ??
  `${settings.basename}@${address.port === defaultClusterPort ? address.host : renderHostPort(address)}`

/** Several nodes need a database that they can share; null where all is well. */
export const refusedBackend = (
  settings: Pick<ClusterSettings, "discovery">,
  backend: "sqlite" | "postgres",
): InvalidSetting | null =>
  settings.discovery.strategy === "none" || backend === "postgres"
    ? null
    : new InvalidSetting({
        variable: "SUPER_PI_STORAGE_BACKEND",
        expected: `postgres, since SQLite is single-node and SUPER_PI_CLUSTER_STRATEGY is ${settings.discovery.strategy}`,
        got: backend,
      })
