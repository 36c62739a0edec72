/**
 * The metrics of a node, as they are counted and as Prometheus reads them.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { Effect } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { boundedLabel } from "../../src/observability/labels.ts"
import { type Metrics, makeMetrics } from "../../src/observability/metrics.ts"
import { metricsRoutes } from "../../src/protocols/metrics/routes.ts"
import { open, prompt, withNode } from "../conversation/harness.ts"

const rules = [
  {
    match: "^use",
    steps: [
      { tools: [{ name: "echo", args: { value: "x" } }], usage: [11, 5] },
      { text: "done", usage: [20, 3] },
    ],
  },
  { match: "^fail", steps: [{ status: 400, message: "no" }] },
  { match: "", steps: [{ status: 429, times: 1, text: "hello", usage: [7, 2] }] },
]

/** The text after a few turns; `/metrics` is asked like any route. */
const afterTurns = (metrics: Metrics): Promise<string> =>
  Effect.runPromise(
    withNode({ rules, observer: metrics.observer }, (sessions) =>
      Effect.gen(function* () {
        for (const said of ["use a tool", "fail", "hi"]) yield* prompt(sessions, yield* open(sessions), said)
        const [route] = metricsRoutes({ sessions }, metrics).routes
        if (route === undefined) throw new Error("expected a route")
        const reply = yield* route.handle(request)
        return reply.type === "text" ? reply.body : ""
      }),
    ),
  )

const request = {
  method: "GET",
  url: new URL("http://x/metrics"),
  params: {},
  headers: {},
  principal: "local",
  requestId: "r",
  remoteAddress: "127.0.0.1",
  body: Effect.succeed(new Uint8Array()),
  json: Effect.succeed(null),
  clientLeft: () => false,
}

const series = (text: string): ReadonlyMap<string, number> =>
  new Map(
    text
      .split("\n")
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => {
        const at = line.lastIndexOf(" ")
        return [line.slice(0, at), Number(line.slice(at + 1))] as const
      }),
  )

describe("the metrics of a node", () => {
  it("count turns, requests, tokens and calls by model, tool and status", async () => {
    const metrics = makeMetrics({
      version: "1.2.3",
      runtime: false,
      prices: { "script/test": { input: 10, output: 100 } },
    })
    const found = series(await afterTurns(metrics))
    const model = 'model="script/test"'
    expect(found.get(`super_pi_turn_total{${model},status="completed"}`)).toBe(2)
    expect(found.get(`super_pi_turn_total{${model},status="error"}`)).toBe(1)
    expect(found.get(`super_pi_llm_requests_total{${model},status="ok"}`)).toBe(3)
    expect(found.get(`super_pi_llm_requests_total{${model},status="model_rejected"}`)).toBe(1)
    expect(found.get(`super_pi_llm_requests_total{${model},status="rate_limited"}`)).toBe(1)
    expect(found.get(`super_pi_llm_retries_total{${model}}`)).toBe(1)
    expect(found.get(`super_pi_llm_input_tokens{${model}}`)).toBe(38)
    expect(found.get(`super_pi_llm_output_tokens{${model}}`)).toBe(10)
    expect(found.get(`super_pi_llm_cost_dollars_total{${model}}`)).toBeCloseTo((38 * 10 + 10 * 100) / 1e6, 12)
    expect(found.get('super_pi_tool_calls_total{tool="echo",status="ok"}')).toBe(1)
    expect(found.get(`super_pi_turn_duration_milliseconds_count{${model},status="completed"}`)).toBe(2)
    expect(found.get(`super_pi_llm_duration_milliseconds_count{${model},status="ok"}`)).toBe(3)
    expect(found.get('super_pi_tool_duration_milliseconds_bucket{le="+Inf",tool="echo",status="ok"}')).toBe(1)
    expect(found.get("super_pi_conversations_open")).toBe(3)
    expect(found.get("super_pi_node_up")).toBe(1)
    expect(found.get('super_pi_actors{kind="machine"}')).toBeGreaterThanOrEqual(3)
    expect(found.get('super_pi_queue_paused{queue="subagents"}')).toBe(0)
    expect([...found.keys()].some((key) => key.startsWith('super_pi_build_info{version="1.2.3"'))).toBe(true)
  })

  it("are told without the node's own figures where the node does not answer", async () => {
    const metrics = makeMetrics({ version: "1", runtime: false })
    const found = series(await metrics.render(null))
    expect(found.get("super_pi_node_up")).toBe(0)
    expect([...found.keys()].filter((key) => key.startsWith("super_pi_queue_jobs"))).toEqual([])
  })

  it("have a help and a type each, and no series twice", async () => {
    const text = await afterTurns(makeMetrics({ version: "1" }))
    const lines = text.split("\n").filter((line) => line !== "")
    const helps = lines.filter((line) => line.startsWith("# HELP ")).map((line) => line.split(" ")[2])
    const types = lines.filter((line) => line.startsWith("# TYPE ")).map((line) => line.split(" ")[2] ?? "")
    expect(new Set(types).size).toBe(types.length)
    expect(helps).toEqual(types)
    const samples = lines.filter((line) => !line.startsWith("#"))
    const keys = samples.map((line) => line.slice(0, line.lastIndexOf(" ")))
    expect(keys.filter((key, at) => keys.indexOf(key) < at)).toEqual([])
    for (const sample of samples) {
      expect(sample).toMatch(/^[a-z_0-9]+(\{([a-z_]+="[^"\n]*",?)*\})? [-+\dINFNa.e]+$/)
      const name = sample.split(/[{ ]/, 1)[0] ?? ""
      expect(types).toContain(types.includes(name) ? name : name.replace(/_(bucket|sum|count)$/, ""))
    }
  })

  const promtool = (() => {
    try {
      execFileSync("promtool", ["--version"], { stdio: "ignore" })
      return true
    } catch {
      return false
    }
  })()

  it.skipIf(!promtool)("satisfy promtool, but for names that are given (skipped without promtool)", async () => {
    const input = await afterTurns(makeMetrics({ version: "1", runtime: false }))
    const { status, stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input, encoding: "utf8" })
    // 1: it cannot be read; 3: it can, and names could be better.
    expect([0, 3]).toContain(status)
    const given = /^super_pi_(turn|llm|tool)_duration_milliseconds |^super_pi_llm_(input|output)_tokens /
    const complaints = `${stdout}${stderr}`.split("\n").filter((line) => line.trim() !== "" && !given.test(line))
    expect(complaints).toEqual([])
  })
})

describe("values of a label", () => {
  it("are only so many, whatever comes", () => {
    fc.assert(
      fc.property(fc.array(fc.string(), { maxLength: 100 }), fc.integer({ min: 1, max: 20 }), (values, most) => {
        const label = boundedLabel(most)
        const given = new Set(values.map(label))
        expect(given.size).toBeLessThanOrEqual(most + 1)
        for (const one of given) expect(one.length).toBeLessThanOrEqual(128)
      }),
    )
  })
})
