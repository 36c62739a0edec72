/**
 * `super-pi node` and `node dist/node.js` as processes: what they serve, what keeps them from starting, and how they leave.
 */
import { spawnSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench, type Running } from "../cli/program.ts"

let bench: Bench
beforeAll(async () => {
  await buildProgram()
  bench = makeBench()
  // Waits until the test lets it go on.
  const command = "touch began; until [ -e go ]; do sleep 0.02; done; echo went"
  const steps = [{ tools: [{ name: "bash", args: { command } }] }, { text: "it is done" }]
  bench.write(
    "script.json",
    JSON.stringify({
      rules: [
        { match: "^work", steps },
        { match: "", steps: [{ text: "hi" }] },
      ],
    }),
  )
}, 120_000)
afterAll(() => bench.remove())

/** An environment with a database and a workspace of its own. */
const place = (name: string, env: Record<string, string> = {}) => ({
  SUPER_PI_SQLITE_PATH: join(bench.directory, `${name}.db`),
  SUPER_PI_SCRIPT: join(bench.directory, "script.json"),
  SUPER_PI_DEFAULT_MODEL: "script/test",
  ...env,
})

/** Starts a node and gives the address that it serves on. */
const serving = async (env: Record<string, string>) => {
  const running = bench.start(["node", "--port", "0", "--mode", "auto"], { env })
  let said = ""
  running.child.stderr?.on("data", (chunk: string) => {
    said += chunk
  })
  await running.until(/serving on http:\/\/\S+[\s\S]*joined as/, "stderr")
  const url = /http:\/\/[\d.]+:\d+/.exec(said)?.[0] ?? ""
  return { running, url }
}

const ask = (url: string, content: string, init: RequestInit = {}) =>
  fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "super-pi-code", messages: [{ role: "user", content }] }),
    ...init,
  })

const json = async (response: Response): Promise<Record<string, unknown>> => JSON.parse(await response.text())

/** Asks until it is so. */
const becomes = async (holds: () => Promise<boolean>) => {
  while (!(await holds())) await new Promise((next) => setTimeout(next, 20))
}

const isThere = (file: string) => {
  try {
    readFileSync(join(bench.directory, file))
    return true
  } catch {
    return false
  }
}

const ended = async ({ running }: { readonly running: Running }, signal: NodeJS.Signals = "SIGTERM") => {
  running.child.kill(signal)
  return running.ended
}

describe("a node as a service", () => {
  it("serves every protocol, its probes and its cluster of one, says so, and leaves with 0", async () => {
    const env = place("serves", { SUPER_PI_NODE_NAME: "super_pi@here" })
    const node = await serving(env)
    expect(await json(await fetch(`${node.url}/health`))).toMatchObject({
      status: "ok",
      database: "ok",
      draining: false,
      faults: [],
      oldest_unserved_ms: null,
    })
    expect(await json(await fetch(`${node.url}/ready`))).toMatchObject({ status: "ready" })
    expect(await (await ask(node.url, "hello")).text()).toContain("hi")
    // The run ends a moment after its answer.
    await becomes(async () => (await (await fetch(`${node.url}/cluster`)).text()).includes('"busy":0'))
    const cluster = await json(await fetch(`${node.url}/cluster`))
    expect(cluster).toMatchObject({ node: "super_pi@here", strategy: "none", draining: false })
    expect(cluster.members).toMatchObject([{ self: true, state: "up", shards: 256, machines: 1, busy: 0 }])
    const metrics = await (await fetch(`${node.url}/metrics`)).text()
    expect(metrics).toMatch(/^super_pi_cluster_members\{state="up"\} 1$/m)
    expect(metrics).toMatch(/^super_pi_cluster_shards_held 256$/m)
    expect(metrics).toMatch(/^super_pi_machines 1$/m)
    const asked = await bench.run(["cluster", "--url", node.url])
    expect(asked.stdout).toMatch(/^super_pi@here \*\s+up\s+256\s+1\s+0\s/m)
    expect(asked.stdout).toContain("256 of 256 shards are held; nothing waits")
    const beside = await bench.run(["cluster", "--json"], { env })
    expect(JSON.parse(beside.stdout)).toMatchObject({ strategy: "none", members: [{ shards: 256, machines: 1 }] })
    const { code, stderr } = await ended(node)
    expect(code).toBe(0)
    expect(stderr).toMatch(/POST \/v1\/chat\/completions 200/)
    expect(stderr).not.toContain("GET /health")
    expect(stderr).toMatch(/draining[\s\S]*left/)
  }, 60_000)

  it("keeps its cluster behind the token, and its probes open", async () => {
    const env = place("token", { SUPER_PI_GATEWAY_TOKEN: "alice=key-a,key-b", SUPER_PI_LOG_FORMAT: "json" })
    const node = await serving(env)
    expect((await fetch(`${node.url}/ready`)).status).toBe(200)
    expect((await fetch(`${node.url}/cluster`)).status).toBe(401)
    const without = await bench.run(["cluster", "--url", node.url])
    expect(`${without.code} ${without.stderr}`).toMatch(
      /^1 super-pi: http:\S+ wants a token: set SUPER_PI_GATEWAY_TOKEN/,
    )
    const asked = await bench.run(["cluster"], { env: { ...env, SUPER_PI_GATEWAY_URL: node.url } })
    expect(asked.stdout).toContain("256 of 256")
    const { code, stderr } = await ended(node)
    expect(code).toBe(0)
    const lines = stderr.trimEnd().split("\n")
    expect(lines.map((line) => JSON.parse(line).message)).toContain("left")
    expect(stderr).not.toContain("key-")
  }, 60_000)

  it("runs without a gateway where none is wanted, also from dist/node.js", async () => {
    const env = place("bare", { SUPER_PI_GATEWAY: "false" })
    const running = bench.start(["node"], { env })
    await running.until(/joined as/, "stderr")
    const { code, stderr } = await ended({ running })
    expect(code).toBe(0)
    expect(stderr).not.toContain("serving")
    const entry = resolve(import.meta.dirname, "../../dist/node.js")
    const help = spawnSync(process.execPath, [entry, "--help"], { encoding: "utf8", env: bench.env })
    expect(help.stdout).toContain("super-pi node")
    const wrong = spawnSync(process.execPath, [entry, "--port", "x"], { encoding: "utf8", env: bench.env })
    expect(wrong.status).toBe(2)
  }, 60_000)

  it("says every fault of its configuration on a line of its own and exits with 2 before it opens anything", async () => {
    const env = place("wrong", {
      SUPER_PI_GATEWAY: "perhaps",
      SUPER_PI_GATEWAY_PORT: "99999",
      SUPER_PI_STORAGE_BACKEND: "oracle",
      SUPER_PI_DRAIN_SECONDS: "soon",
    })
    const { code, stderr } = await bench.run(["node"], { env })
    expect(code).toBe(2)
    expect(stderr.trimEnd().split("\n")).toEqual([
      'super-pi: SUPER_PI_GATEWAY: expected true or false, got "perhaps"',
      'super-pi: SUPER_PI_GATEWAY_PORT: expected a port from 0 to 65535, got "99999"',
      'super-pi: SUPER_PI_STORAGE_BACKEND: expected sqlite or postgres, got "oracle"',
      'super-pi: SUPER_PI_DRAIN_SECONDS: expected seconds from 0 to 3600, got "soon"',
    ])
    expect(isThere("wrong.db")).toBe(false)
    const open = await bench.run(["node"], { env: place("wrong", { SUPER_PI_GATEWAY_BIND: "0.0.0.0" }) })
    expect(`${open.code} ${open.stderr.trim()}`).toBe(
      '2 super-pi: SUPER_PI_GATEWAY_BIND: expected a loopback address while no token is configured, got "0.0.0.0"; set SUPER_PI_GATEWAY_TOKEN or gateway.tokens',
    )
    const secret = { SUPER_PI_CLUSTER_STRATEGY: "static", SUPER_PI_CLUSTER_HOSTS: "a,b" }
    const alone = await bench.run(["node"], {
      env: { ...place("wrong", secret), SUPER_PI_CLUSTER_SECRET: "0123456789abcdef" },
    })
    expect(`${alone.code} ${alone.stderr.trim()}`).toMatch(
      /^2 super-pi: SUPER_PI_STORAGE_BACKEND: expected postgres, since SQLite is single-node/,
    )
    expect(isThere("wrong.db")).toBe(false)
  }, 60_000)
})

describe("a node that is told to leave in the middle of a turn", () => {
  const inATurn = async (name: string, extra: Record<string, string>) => {
    for (const file of ["began", "go"]) spawnSync("rm", ["-f", join(bench.directory, file)])
    const env = place(name, extra)
    const node = await serving(env)
    // Where the connection ends without an answer, the status is 0.
    const answer = ask(node.url, "work").then(
      async (response) => ({ status: response.status, text: await response.text() }),
      () => ({ status: 0, text: "" }),
    )
    await becomes(async () => isThere("began"))
    return { ...node, answer, env }
  }

  it("is not ready any more, refuses new turns with Retry-After, and lets the turn end before it leaves", async () => {
    const node = await inATurn("drains", {})
    expect((await json(await fetch(`${node.url}/cluster`))).members).toMatchObject([{ machines: 1, busy: 1 }])
    node.running.child.kill("SIGTERM")
    await node.running.until(/draining: no new turns/, "stderr")
    await becomes(async () => (await fetch(`${node.url}/ready`)).status === 503)
    expect(await json(await fetch(`${node.url}/ready`))).toMatchObject({ status: "draining", draining: true })
    expect((await fetch(`${node.url}/health`)).status).toBe(200)
    const refused = await ask(node.url, "hello")
    expect(refused.status).toBe(503)
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    expect(await refused.text()).toContain("draining")
    writeFileSync(join(bench.directory, "go"), "")
    const answered = await node.answer
    expect(answered.status).toBe(200)
    expect(answered.text).toContain("it is done")
    const { code, stderr } = await node.running.ended
    expect(code).toBe(0)
    expect(stderr).toMatch(/left\W*$/)
  }, 60_000)

  it("leaves at the deadline, and the turn goes on at the next start", async () => {
    const node = await inATurn("deadline", { SUPER_PI_DRAIN_SECONDS: "0.2" })
    node.running.child.kill("SIGTERM")
    const cut = await node.answer
    expect(cut.status).not.toBe(200)
    expect((await node.running.ended).code).toBe(0)
    writeFileSync(join(bench.directory, "go"), "")
    const next = await serving(node.env)
    await becomes(async () => {
      const { stdout } = await bench.run(["session", "export", "1"], { env: node.env })
      return stdout.includes("it is done")
    })
    expect((await ended(next)).code).toBe(0)
  }, 60_000)

  it("leaves at once at a second signal", async () => {
    const node = await inATurn("twice", {})
    node.running.child.kill("SIGTERM")
    await node.running.until(/draining: no new turns/, "stderr")
    node.running.child.kill("SIGTERM")
    const { stderr } = await node.running.ended
    expect(stderr).not.toContain("left")
    expect((await node.answer).status).not.toBe(200)
    // The command that still waits is not ours any more; it ends by itself.
    writeFileSync(join(bench.directory, "go"), "")
  }, 60_000)
})
