/**
 * The log of the command line: who a line is about, its formats, and what is taken out of it.
 */
import { Effect, Schema } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { checkTraces } from "../../src/cli/doctor-traces.ts"
import { text } from "../../src/domain/message.ts"
import { logLayer, withLogLevel } from "../../src/observability/logs.ts"
import { defineTool } from "../../src/tools/define.ts"
import { open, prompt, withNode } from "../conversation/harness.ts"
import { collector } from "./collector.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

/** The lines that `work` writes to stderr; none may go to stdout. */
const logged = async (env: Readonly<Record<string, string>>, work: Effect.Effect<unknown, unknown>) => {
  const lines: Array<string> = []
  const stdout = vi.spyOn(console, "log")
  vi.spyOn(console, "error").mockImplementation((line: unknown) => void lines.push(String(line)))
  await Effect.runPromise(work.pipe(withLogLevel(env), Effect.provide(logLayer(env))))
  expect(stdout).not.toHaveBeenCalled()
  return lines
}

const noisy = defineTool({
  name: "noisy",
  description: "Logs.",
  parameters: Schema.Struct({}),
  effects: ["read"],
  execute: () => Effect.as(Effect.logInfo("from inside of the tool"), { output: [text("ok")] }),
})

const rules = [{ match: "", steps: [{ tools: [{ name: "noisy", args: {} }] }, { text: "done" }] }]
const turn = withNode({ rules, tools: [noisy] }, (sessions) =>
  Effect.flatMap(open(sessions), (id) => prompt(sessions, id, "go")),
)

describe("a log line of a conversation", () => {
  it("carries its conversation and the task that it is about, as JSON", async () => {
    const lines = await logged({ SUPER_PI_LOG_LEVEL: "info", SUPER_PI_LOG_FORMAT: "json" }, turn)
    const [line] = lines.map((one) => JSON.parse(one)).filter(({ message }) => /inside/.test(String(message)))
    expect(line).toMatchObject({ logLevel: "INFO", annotations: { conversation_id: 1 } })
    expect(line.annotations.task_id).toBeGreaterThan(0)
  })

  it("carries them as logfmt and for people", async () => {
    const [plain] = (await logged({ SUPER_PI_LOG_LEVEL: "info" }, turn)).filter((one) => one.includes("inside"))
    expect(plain).toMatch(/^timestamp=\S+ level=INFO fiber=\S+ message="from inside of the tool" .*conversation_id=1/)
    expect(plain).toMatch(/task_id=\d+/)
    const pretty = await logged({ SUPER_PI_LOG_LEVEL: "info", SUPER_PI_LOG_FORMAT: "pretty" }, turn)
    const shown = pretty.find((one) => one.includes("inside"))
    expect(shown).toMatch(/^\d\d:\d\d:\d\d\.\d{3} INFO {2}"from inside of the tool".*conversation_id=1/)
  })

  it("is not written below the level that is asked for, nor where none is", async () => {
    expect(await logged({ SUPER_PI_LOG_LEVEL: "error" }, turn)).toEqual([])
    expect(await logged({}, turn)).toEqual([])
    expect(await logged({ SUPER_PI_LOG_LEVEL: "loud" }, turn)).toEqual([])
  })
})

describe("secrets", () => {
  const env = {
    SUPER_PI_LOG_LEVEL: "debug",
    OPENAI_API_KEY: "my-own-key-0001",
    SUPER_PI_GATEWAY_TOKEN: "gateway-token-0002",
    OTEL_EXPORTER_OTLP_HEADERS: "x-honeycomb-team=header-value-0003",
  }

  it.each(["json", "logfmt", "pretty"])(
    "are in no line of the log, in messages, annotations and causes, as %s",
    async (format) => {
      const said = [
        "key my-own-key-0001",
        "token gateway-token-0002",
        "header header-value-0003",
        "authorization: Bearer abcdefghijklmnopqrst",
      ]
      const work = Effect.forEach(said, (one) =>
        Effect.logError(one, new Error(one)).pipe(Effect.annotateLogs({ header: one })),
      )
      const lines = await logged({ ...env, SUPER_PI_LOG_FORMAT: format }, work)
      expect(lines).toHaveLength(said.length)
      expect(lines.join("\n")).not.toMatch(/key-0001|token-0002|value-0003|abcdefghij/)
      expect(lines.every((line) => line.includes("[redacted]"))).toBe(true)
    },
  )
})

describe("doctor", () => {
  const check = (env: Readonly<Record<string, string>>) => checkTraces(env)

  it("says whether traces are configured and whether the collector takes them", () =>
    Effect.gen(function* () {
      const received = yield* collector
      const on = { OTEL_EXPORTER_OTLP_ENDPOINT: received.url }
      expect(yield* check({})).toMatchObject({ status: "ok", detail: "off (OTEL_EXPORTER_OTLP_ENDPOINT is not set)" })
      expect(yield* check(on)).toMatchObject({ status: "ok", detail: `exported to ${received.url}/v1/traces` })
      expect(yield* check({ ...on, OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" })).toMatchObject({ status: "ok" })
      received.statuses = [401]
      expect(yield* check(on)).toMatchObject({ status: "warn", advice: "set OTEL_EXPORTER_OTLP_HEADERS" })
      expect(yield* check({ OTEL_EXPORTER_OTLP_ENDPOINT: "nowhere" })).toMatchObject({ status: "warn" })
      const secret = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:hidden@127.0.0.1:9" }
      const away = yield* check(secret)
      expect(away).toMatchObject({ status: "warn", detail: "no collector answers at http://127.0.0.1:9/v1/traces" })
    }).pipe(Effect.scoped, Effect.runPromise))
})
