/**
 * The files of `deploy/` against the program: what they set is read, what they start exists, what they probe is served, and nobody is killed
 * before its drain is over.
 */
import { readFileSync } from "node:fs"
import path from "node:path"
import { Effect, Either } from "effect"
import { describe, expect, it } from "vitest"
import { superPi } from "../../src/cli/commands.ts"
import { defaultGatewayPort } from "../../src/cli/service-settings.ts"
import { clusterSettings, defaultClusterPort } from "../../src/domain/cluster-settings.ts"
import { statusRoutes } from "../../src/protocols/http/status.ts"
import { sourcesBelow } from "../architecture/source.ts"
import { makeFakeSessions } from "../protocols/fake-sessions.ts"
import { at, dockerfileOf, everything, textOf, unitOf, variablesOf, yamlOf } from "./files.ts"

const root = path.resolve(import.meta.dirname, "../..")

/** Every word of the sources that looks like a variable. */
const read = new Set(
  sourcesBelow("src").flatMap(
    ({ file }) => readFileSync(path.join(root, file), "utf8").match(/\b[A-Z][A-Z0-9_]{3,}\b/g) ?? [],
  ),
)

/** Variables of other programs: of Node.js, of the image of PostgreSQL, and one that only stands in another one's value. */
const foreign = new Set(["NODE_ENV", "POSTGRES_PASSWORD", "POSTGRES_USER", "POSTGRES_DB", "POD_IP"])

const unread = (names: Iterable<string>): ReadonlyArray<string> =>
  [...names].filter((name) => !foreign.has(name) && !read.has(name))

const commands = new Set((superPi.commands ?? []).map(({ name }) => name))

const drainMs = Either.match(clusterSettings({}), { onLeft: () => Number.NaN, onRight: (settings) => settings.drainMs })

/** What comes after a drain may take this long: the last requests, handlers, conversations that are stopped. */
const afterDrainMs = 30_000

const openRoutes = Effect.runPromise(
  Effect.scoped(
    Effect.map(makeFakeSessions({}), ({ sessions }) =>
      statusRoutes({ sessions, version: "1" }, () => [])
        .routes.filter(({ method, open }) => method === "GET" && open === true)
        .map(({ path: route }) => route),
    ),
  ),
)

const kubernetes = yamlOf("deploy/kubernetes/super-pi.yaml")
const resource = (kind: string, name: string) => {
  const found = kubernetes.find((one) => one.kind === kind && at(one, "metadata", "name") === name)
  if (found === undefined) throw new Error(`expected a ${kind} ${name}`)
  return found
}
const pod = (kind: string, name: string) => at(resource(kind, name), "spec", "template", "spec")
const compose = yamlOf("deploy/docker-compose.yml")[0]
const service = (name: string, ...keys: ReadonlyArray<string | number>) => at(compose, "services", name, ...keys)

describe("the image", () => {
  const all = dockerfileOf("deploy/Dockerfile")
  const last = Math.max(...all.map(({ stage }) => stage))
  const final = all.filter(({ stage }) => stage === last)
  const arg = (name: string) => final.find((one) => one.name === name)?.args ?? ""

  it("has several stages on the Node.js that the package wants, and runs as nobody's root", () => {
    const from = all.filter(({ name }) => name === "FROM").map(({ args }) => args)
    expect(from.length).toBeGreaterThan(1)
    for (const image of from) expect(image).toMatch(/^node:2\d-slim\b/)
    expect(arg("USER")).toBe("node")
    expect(arg("STOPSIGNAL")).toBe("SIGTERM")
  })

  it("starts a command that there is, and takes production packages only", () => {
    expect(JSON.parse(arg("ENTRYPOINT"))).toEqual(["tini", "--", "/app/bin/super-pi"])
    const [command] = JSON.parse(arg("CMD"))
    expect(commands.has(command)).toBe(true)
    const installed = all.filter(({ args, name }) => name === "RUN" && args.includes("npm ci"))
    const copied = final.find(({ args, name }) => name === "COPY" && args.includes("node_modules"))
    const stage = all.find(({ args, name }) => name === "FROM" && args.endsWith("AS packages"))?.stage
    expect(copied?.args).toMatch(/^--from=packages /)
    expect(installed.find((one) => one.stage === stage)?.args).toContain("--omit=dev")
  })

  it("sets variables that the program reads, with the ports that it serves", () => {
    const env = arg("ENV")
      .split(/\s+/)
      .map((pair) => pair.split("=", 2))
    expect(unread(env.map(([name = ""]) => name))).toEqual([])
    expect(Object.fromEntries(env)).toMatchObject({ SUPER_PI_GATEWAY_PORT: String(defaultGatewayPort) })
    expect(arg("EXPOSE").split(" ").map(Number)).toEqual([defaultGatewayPort, defaultClusterPort])
  })

  it("is healthy when the health route says so", async () => {
    const check = /CMD (\[.*\])$/.exec(arg("HEALTHCHECK"))?.[1] ?? "[]"
    const [node, flag, script] = JSON.parse(check)
    expect([node, flag]).toEqual(["node", "-e"])
    const route = /'(\/\w+)'\)/.exec(script)?.[1]
    expect(await openRoutes).toContain(route)
  })
})

describe("the compose file", () => {
  it("has PostgreSQL, one migration, and two nodes that start after it", () => {
    expect(service("postgres", "image")).toBe("postgres:18")
    expect(service("migrate", "command")).toEqual(["migrate"])
    expect(service("migrate", "restart")).toBe("no")
    for (const node of ["node-1", "node-2"]) {
      expect(service(node, "command")).toEqual(["node"])
      expect(service(node, "depends_on", "migrate", "condition")).toBe("service_completed_successfully")
      expect(service(node, "depends_on", "postgres", "condition")).toBe("service_healthy")
      expect(service(node, "env_file")).toEqual(["compose.env"])
    }
    expect(commands.has("migrate")).toBe(true)
  })

  it("makes them members of one cluster that find each other", () => {
    const shared = variablesOf("deploy/compose.env.example").map((name) => [name, "0123456789abcdef"] as const)
    for (const node of ["node-1", "node-2"]) {
      const environment = service(node, "environment")
      const settings = clusterSettings({ ...Object.fromEntries(shared), ...(environment as Record<string, string>) })
      expect(Either.getOrThrow(settings)).toMatchObject({
        name: `super_pi@${node}`,
        discovery: { strategy: "static", hosts: [{ host: "node-1" }, { host: "node-2" }] },
      })
    }
  })

  it("sets variables that the program reads, publishes its port on this machine, and waits for the drain", () => {
    const set = ["migrate", "node-1", "node-2"].flatMap((name) => Object.keys(service(name, "environment") ?? {}))
    expect(unread([...set, ...variablesOf("deploy/compose.env.example")])).toEqual([])
    for (const node of ["node-1", "node-2"]) {
      expect(String(service(node, "ports", 0))).toMatch(new RegExp(`^127\\.0\\.0\\.1:\\d+:${defaultGatewayPort}$`))
      const grace = Number(/^(\d+)s$/.exec(String(service(node, "stop_grace_period")))?.[1]) * 1000
      expect(grace).toBeGreaterThanOrEqual(drainMs + afterDrainMs)
      expect(Number(at(service(node, "environment"), "SUPER_PI_DRAIN_SECONDS")) * 1000).toBe(drainMs)
    }
  })

  it("is built from a Dockerfile that is there, and has no secret in it", () => {
    const { context, dockerfile } = service("node-1", "build") as { context: string; dockerfile: string }
    expect(textOf(path.join("deploy", context, dockerfile))).toContain("FROM node")
    expect(textOf("deploy/docker-compose.yml")).not.toMatch(/PASSWORD|TOKEN|SECRET|DATABASE_URL/)
  })
})

describe("the systemd unit", () => {
  const unit = unitOf("deploy/vm/super-pi.service")
  const value = (key: string) => unit.get("Service")?.get(key)?.at(-1)

  it("starts the node, again and again but for a wrong configuration, and waits for the drain", () => {
    expect(value("ExecStart")).toBe("/usr/bin/node /opt/super-pi/dist/node.js")
    expect(value("Restart")).toBe("always")
    expect(value("RestartPreventExitStatus")).toBe("2")
    expect(value("KillSignal")).toBe("SIGTERM")
    expect(Number(value("TimeoutStopSec")) * 1000).toBeGreaterThanOrEqual(drainMs + afterDrainMs)
  })

  it("has no rights beyond its state directory", () => {
    const hardened = { DynamicUser: "yes", NoNewPrivileges: "yes", ProtectSystem: "strict", CapabilityBoundingSet: "" }
    for (const [key, wanted] of Object.entries(hardened)) expect([key, value(key)]).toEqual([key, wanted])
    const data = unit.get("Service")?.get("Environment") ?? []
    expect(data).toContain(`SUPER_PI_DATA_DIR=/var/lib/${value("StateDirectory")}`)
    // Node.js compiles at run time.
    expect(value("MemoryDenyWriteExecute")).toBeUndefined()
  })

  it("sets variables that the program reads", () => {
    const set = (unit.get("Service")?.get("Environment") ?? []).map((pair) => pair.split("=", 1)[0] ?? "")
    expect(unread([...set, ...variablesOf("deploy/vm/super-pi.env")])).toEqual([])
    expect(value("EnvironmentFile")).toBe("/etc/super-pi/super-pi.env")
  })
})

describe("the Kubernetes manifests", () => {
  const container = at(pod("Deployment", "super-pi"), "containers", 0)

  it("have each thing that a rolling update needs", () => {
    const kinds = kubernetes.map(({ kind }) => kind).sort()
    expect(kinds).toEqual(["ConfigMap", "Deployment", "Job", "PodDisruptionBudget", "Secret", "Service", "Service"])
    expect(at(resource("Deployment", "super-pi"), "spec", "strategy", "rollingUpdate", "maxUnavailable")).toBe(0)
    expect(at(resource("PodDisruptionBudget", "super-pi"), "spec", "maxUnavailable")).toBe(1)
    expect(at(resource("Job", "super-pi-migrate"), "spec", "template", "spec", "containers", 0, "args")).toEqual([
      "migrate",
    ])
    expect(at(container, "args")).toEqual(["node"])
  })

  it("select the pods that they make", () => {
    const labels = at(resource("Deployment", "super-pi"), "spec", "template", "metadata", "labels")
    const migration = at(resource("Job", "super-pi-migrate"), "spec", "template", "metadata", "labels")
    const selectors = [
      at(resource("Deployment", "super-pi"), "spec", "selector", "matchLabels"),
      at(resource("PodDisruptionBudget", "super-pi"), "spec", "selector", "matchLabels"),
      at(resource("Service", "super-pi"), "spec", "selector"),
      at(resource("Service", "super-pi-nodes"), "spec", "selector"),
    ]
    for (const selector of selectors) {
      expect(labels).toMatchObject(selector as Record<string, string>)
      expect(migration).not.toMatchObject(selector as Record<string, string>)
    }
  })

  it("find the nodes by a headless Service, on the ports that nodes serve", () => {
    const nodes = resource("Service", "super-pi-nodes")
    expect(at(nodes, "spec", "clusterIP")).toBe("None")
    expect(at(nodes, "spec", "publishNotReadyAddresses")).toBe(true)
    const data = at(resource("ConfigMap", "super-pi"), "data") as Record<string, string>
    const secret = { SUPER_PI_CLUSTER_SECRET: "0123456789abcdef" }
    expect(Either.getOrThrow(clusterSettings({ ...data, ...secret })).discovery).toMatchObject({
      strategy: "kubernetes_dns",
      service: "super-pi-nodes",
    })
    expect(at(container, "ports")).toEqual([
      { name: "http", containerPort: defaultGatewayPort },
      { name: "cluster", containerPort: defaultClusterPort },
    ])
    expect(at(nodes, "spec", "ports", 0, "port")).toBe(defaultClusterPort)
  })

  it("probe routes that are open: ready for traffic, health for restarts", async () => {
    const routes = await openRoutes
    const probe = (name: string) => at(container, name, "httpGet", "path")
    expect(probe("readinessProbe")).toBe("/ready")
    expect(probe("livenessProbe")).toBe("/health")
    expect(probe("startupProbe")).toBe("/health")
    for (const name of ["readinessProbe", "livenessProbe", "startupProbe"]) expect(routes).toContain(probe(name))
  })

  it("give a pod the time to drain", () => {
    const grace = Number(at(pod("Deployment", "super-pi"), "terminationGracePeriodSeconds")) * 1000
    const [, , script] = at(container, "lifecycle", "preStop", "exec", "command") as ReadonlyArray<string>
    const before = Number(/, (\d+)\)/.exec(script ?? "")?.[1])
    const data = at(resource("ConfigMap", "super-pi"), "data")
    expect(Number(at(data, "SUPER_PI_DRAIN_SECONDS")) * 1000).toBe(drainMs)
    expect(grace).toBeGreaterThanOrEqual(before + drainMs + afterDrainMs)
  })

  it("set variables that the program reads", () => {
    const names = [
      ...Object.keys(at(resource("ConfigMap", "super-pi"), "data") as object),
      ...Object.keys(at(resource("Secret", "super-pi"), "stringData") as object),
      ...everything(kubernetes).flatMap(({ key, value }) =>
        key === "env" && Array.isArray(value) ? value.map((one: { name: string }) => one.name) : [],
      ),
    ]
    expect(names.length).toBeGreaterThan(10)
    expect(unread(names)).toEqual([])
  })

  it("run without root, without rights and on a file system that is read only", () => {
    for (const [kind, name] of [
      ["Deployment", "super-pi"],
      ["Job", "super-pi-migrate"],
    ] as const) {
      expect(at(pod(kind, name), "securityContext")).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 })
      const own = at(pod(kind, name), "containers", 0)
      expect(at(own, "securityContext")).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] },
      })
      const volumes = (at(pod(kind, name), "volumes") as ReadonlyArray<{ name: string }>).map((one) => one.name)
      const mounts = at(own, "volumeMounts") as ReadonlyArray<{ name: string; mountPath: string }>
      expect(mounts.map((one) => one.name).sort()).toEqual([...volumes].sort())
      expect(mounts.map((one) => one.mountPath)).toEqual(expect.arrayContaining(["/tmp", "/data", "/workspace"]))
    }
  })
})
