/** What the environment says about a cluster: every variable, its default, and the fault of a wrong one. */
import { Either, Redacted } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  type ClusterSettings,
  clusterSettings,
  defaultClusterPort,
  nodeNameAt,
  refusedBackend,
} from "../../src/domain/cluster-settings.ts"
import { parseHostPort, renderHostPort } from "../../src/domain/host-port.ts"

type Env = Readonly<Record<string, string>>

const secret = "sixteen letters!"
const withSecret = (env: Env): Env => ({ SUPER_PI_CLUSTER_SECRET: secret, ...env })

const read = (env: Env): ClusterSettings =>
  Either.getOrThrowWith(clusterSettings(env), (fault) => new Error(fault.message))
const fault = (env: Env): string =>
  Either.match(clusterSettings(env), { onLeft: (one) => one.message, onRight: () => "" })

describe("settings of a cluster", () => {
  it("are those of a node alone where nothing is said", () => {
    expect(read({})).toEqual({
      discovery: { strategy: "none" },
      secret: null,
      name: null,
      basename: "super_pi",
      onlyNames: null,
      listen: { host: null, port: defaultClusterPort },
      advertise: null,
      tls: null,
      drainMs: 30_000,
    })
    expect(read({ SUPER_PI_CLUSTER_STRATEGY: "", SUPER_PI_CLUSTER_HOSTS: " " })).toEqual(read({}))
  })

  it("read a list of hosts, also under the name epmd", () => {
    const hosts = "super_pi@10.0.0.1, super_pi@node-b:4000,node-c,[fd00::1]:4001,[fd00::2],fd00::3,"
    const expected = [
      { host: "10.0.0.1", port: 45_893 },
      { host: "node-b", port: 4000 },
      { host: "node-c", port: 45_893 },
      { host: "fd00::1", port: 4001 },
      { host: "fd00::2", port: 45_893 },
      { host: "fd00::3", port: 45_893 },
    ]
    for (const SUPER_PI_CLUSTER_STRATEGY of ["static", "epmd"]) {
      const settings = read(withSecret({ SUPER_PI_CLUSTER_STRATEGY, SUPER_PI_CLUSTER_HOSTS: hosts }))
      expect(settings.discovery).toEqual({ strategy: "static", hosts: expected })
    }
    const other = { SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a", SUPER_PI_CLUSTER_PORT: "7000" }
    expect(read(withSecret(other)).discovery).toEqual({ strategy: "static", hosts: [{ host: "a", port: 7000 }] })
  })

  it("read the strategies by DNS with their interval", () => {
    expect(
      read(withSecret({ SUPER_PI_CLUSTER_STRATEGY: "dnspoll", SUPER_PI_CLUSTER_DNS_QUERY: "nodes.example" })).discovery,
    ).toEqual({ strategy: "dnspoll", query: "nodes.example", port: 45_893, pollMs: 5000 })
    expect(
      read(
        withSecret({
          SUPER_PI_CLUSTER_STRATEGY: "kubernetes_dns",
          SUPER_PI_CLUSTER_K8S_SERVICE: "super-pi",
          SUPER_PI_CLUSTER_POLL_MS: "250",
        }),
      ).discovery,
    ).toEqual({ strategy: "kubernetes_dns", service: "super-pi", port: 45_893, pollMs: 250 })
  })

  it("read gossip, whose secret is that of the cluster unless it has its own", () => {
    const shared = read({ SUPER_PI_CLUSTER_STRATEGY: "gossip", RELEASE_COOKIE: secret })
    expect(shared.discovery).toEqual({ strategy: "gossip", secret: Redacted.make(secret), port: 45_892 })
    const own = read(
      withSecret({
        SUPER_PI_CLUSTER_STRATEGY: "gossip",
        SUPER_PI_CLUSTER_GOSSIP_SECRET: "seventeen letters",
        SUPER_PI_CLUSTER_GOSSIP_PORT: "45000",
      }),
    )
    expect(own.discovery).toEqual({ strategy: "gossip", secret: Redacted.make("seventeen letters"), port: 45_000 })
    expect(String(JSON.stringify(own))).not.toContain("letters")
  })

  it("read names, addresses, certificates and the time to drain", () => {
    const settings = read(
      withSecret({
        RELEASE_NODE: "demo@10.0.0.5",
        SUPER_PI_CLUSTER_NODE_BASENAME: "demo",
        SUPER_PI_CLUSTER_HOST: "::",
        SUPER_PI_CLUSTER_PORT: "0",
        SUPER_PI_CLUSTER_ADVERTISE: "[fd00::5]:4000",
        SUPER_PI_CLUSTER_TLS_CERT: "/c",
        SUPER_PI_CLUSTER_TLS_KEY: "/k",
        SUPER_PI_CLUSTER_TLS_CA: "/a",
        SUPER_PI_DRAIN_SECONDS: "2.5",
      }),
    )
    expect(settings).toMatchObject({
      name: "demo@10.0.0.5",
      basename: "demo",
      onlyNames: "demo",
      listen: { host: "::", port: 0 },
      advertise: { host: "fd00::5", port: 4000 },
      tls: { cert: "/c", key: "/k", ca: "/a" },
      drainMs: 2500,
    })
    expect(read({ SUPER_PI_NODE_NAME: "a", RELEASE_NODE: "b" }).name).toBe("a")
  })

  it("give a node the name of its address where it has none", () => {
    expect(nodeNameAt(read({}), { host: "10.0.0.1", port: defaultClusterPort })).toBe("super_pi@10.0.0.1")
    expect(nodeNameAt(read({}), { host: "fd00::1", port: 4000 })).toBe("super_pi@[fd00::1]:4000")
    expect(nodeNameAt(read({ SUPER_PI_NODE_NAME: "a" }), { host: "10.0.0.1", port: 1 })).toBe("a")
  })

  it("refuse several nodes on SQLite", () => {
    const several = read(withSecret({ SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a" }))
    expect(refusedBackend(several, "sqlite")?.message).toBe(
      "SUPER_PI_STORAGE_BACKEND: expected postgres, since SQLite is single-node and SUPER_PI_CLUSTER_STRATEGY is static, got sqlite",
    )
    expect(refusedBackend(several, "postgres")).toBeNull()
    expect(refusedBackend(read({}), "sqlite")).toBeNull()
  })
})

describe("a wrong variable", () => {
  const cases: ReadonlyArray<readonly [Env, string]> = [
    [
      { SUPER_PI_CLUSTER_STRATEGY: "zookeeper" },
      'SUPER_PI_CLUSTER_STRATEGY: expected one of none, static, dnspoll, kubernetes_dns, gossip, got "zookeeper"',
    ],
    [
      { SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a" },
      "SUPER_PI_CLUSTER_SECRET: expected a secret of at least 16 characters, got nothing",
    ],
    [
      { SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a", RELEASE_COOKIE: "hunter2" },
      "RELEASE_COOKIE: expected a secret of at least 16 characters, got 7",
    ],
    [
      withSecret({ SUPER_PI_CLUSTER_STRATEGY: "static" }),
      "SUPER_PI_CLUSTER_HOSTS: expected a comma-separated list of hosts, got nothing",
    ],
    [
      withSecret({ SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a,b:99999" }),
      'SUPER_PI_CLUSTER_HOSTS: expected a host, host:port, name@host or [IPv6]:port, got "b:99999"',
    ],
    [
      withSecret({ SUPER_PI_CLUSTER_STRATEGY: "dnspoll", SUPER_PI_CLUSTER_DNS_QUERY: "a b" }),
      'SUPER_PI_CLUSTER_DNS_QUERY: expected the DNS name that lists all nodes, got "a b"',
    ],
    [
      withSecret({ SUPER_PI_CLUSTER_STRATEGY: "kubernetes_dns" }),
      "SUPER_PI_CLUSTER_K8S_SERVICE: expected the name of the headless Service, got nothing",
    ],
    [
      withSecret({ SUPER_PI_CLUSTER_STRATEGY: "gossip", SUPER_PI_CLUSTER_GOSSIP_SECRET: "short" }),
      "SUPER_PI_CLUSTER_GOSSIP_SECRET: expected a secret of at least 16 characters, got 5",
    ],
    [
      { SUPER_PI_CLUSTER_POLL_MS: "5s" },
      'SUPER_PI_CLUSTER_POLL_MS: expected milliseconds from 100 to 3600000, got "5s"',
    ],
    [{ SUPER_PI_CLUSTER_PORT: "70000" }, 'SUPER_PI_CLUSTER_PORT: expected a port from 0 to 65535, got "70000"'],
    [
      { SUPER_PI_CLUSTER_ADVERTISE: "http://a" },
      'SUPER_PI_CLUSTER_ADVERTISE: expected a host, host:port, name@host or [IPv6]:port, got "http://a"',
    ],
    [
      { SUPER_PI_CLUSTER_TLS_CERT: "/c", SUPER_PI_CLUSTER_TLS_CA: "/a" },
      "SUPER_PI_CLUSTER_TLS_KEY: expected a path, since the others of SUPER_PI_CLUSTER_TLS_CERT, _KEY and _CA are set, got nothing",
    ],
    [{ SUPER_PI_DRAIN_SECONDS: "-1" }, 'SUPER_PI_DRAIN_SECONDS: expected seconds from 0 to 3600, got "-1"'],
    [
      { SUPER_PI_NODE_NAME: "a b" },
      'SUPER_PI_NODE_NAME: expected a name of letters, digits and . _ - @ : [ ], at most 200, got "a b"',
    ],
    [
      { SUPER_PI_NODE_NAME: "other@a", SUPER_PI_CLUSTER_NODE_BASENAME: "super_pi" },
      'SUPER_PI_NODE_NAME: expected a name that begins with SUPER_PI_CLUSTER_NODE_BASENAME ("super_pi"), got "other@a"',
    ],
  ]

  for (const [env, message] of cases) {
    it(`is named with what was expected: ${message.slice(0, message.indexOf(","))}`, () => {
      expect(fault(env)).toBe(message)
      expect(fault(env)).not.toContain(secret)
    })
  }

  it("never throws, whatever it holds, and a secret is never shown", () => {
    const names = [
      "STRATEGY",
      "HOSTS",
      "DNS_QUERY",
      "K8S_SERVICE",
      "POLL_MS",
      "PORT",
      "HOST",
      "ADVERTISE",
      "NODE_BASENAME",
      "GOSSIP_PORT",
    ].map((name) => `SUPER_PI_CLUSTER_${name}`)
    const value = fc.oneof(fc.string(), fc.constantFrom("static", "dnspoll", "gossip", "a:1", "[::1]:2", "7"))
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...names), value), fc.string({ minLength: 8 }), (env, hidden) => {
        const given = `secret-${hidden}`
        const result = clusterSettings({ ...env, SUPER_PI_CLUSTER_SECRET: given })
        if (Either.isLeft(result)) expect(result.left.message).not.toContain(given)
        else expect(JSON.stringify(result.right)).not.toContain(JSON.stringify(given))
      }),
    )
  })
})

describe("an address", () => {
  it("is read as it is written, for any host and port", () => {
    const host = fc.oneof(fc.ipV4(), fc.ipV6(), fc.domain())
    fc.assert(
      fc.property(host, fc.integer({ min: 0, max: 65_535 }), (one, port) => {
        expect(parseHostPort(renderHostPort({ host: one, port }), 1)).toEqual({ host: one, port })
        expect(parseHostPort(`super_pi@${renderHostPort({ host: one, port })}`, 1)).toEqual({ host: one, port })
      }),
    )
  })

  it("is nothing where it is no address", () => {
    for (const text of [
      "",
      "@",
      ":1",
      "a:",
      "a:b",
      "a:65536",
      "[a]:1",
      "[::1",
      "[::1]x",
      "a b",
      "-a",
      "a/b",
      "1.2.3.4:5:6x",
    ]) {
      expect([text, parseHostPort(text, 1)]).toEqual([text, null])
    }
    fc.assert(
      fc.property(fc.string(), (text) => {
        const address = parseHostPort(text, 1)
        if (address !== null) expect(parseHostPort(renderHostPort(address), 2)).toEqual(address)
      }),
    )
  })
})
