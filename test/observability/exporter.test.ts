/**
 * The way of spans to the collector: batches, a collector that is away, a queue that is full, the end; and which traces are kept.
 */
import { Effect, Exit, Option } from "effect"
import { describe, expect, it } from "vitest"
import { noSpan, parentOf } from "../../src/domain/trace-context.ts"
import { SpanExporter } from "../../src/observability/exporter.ts"
import type { Sampling } from "../../src/observability/settings.ts"
import { type EndedSpan, exportingTracer } from "../../src/observability/tracer.ts"
import { underTracer } from "../../src/observability/tracing.ts"
import { collector } from "./collector.ts"

const span = (name: string): EndedSpan => ({
  name,
  kind: "internal",
  traceId: "ab".repeat(16),
  spanId: "cd".repeat(8),
  parentId: null,
  startedAt: 1n,
  endedAt: 2n,
  attributes: new Map(),
  links: [],
  code: null,
})

const limits = { url: "http://collector/", headers: {}, timeoutMs: 1_000, maxQueue: 4, maxBatch: 2, intervalMs: 60_000 }

/** An exporter whose collector answers as `answers` say, then with 200; bodies are the names of the spans. */
const exporting = (answers: Array<number | Error>, settings: Partial<typeof limits> = {}) => {
  const bodies: Array<string> = []
  const told: Array<string> = []
  const exporter = new SpanExporter({
    settings: { ...limits, ...settings },
    encode: (spans) => ({
      body: new TextEncoder().encode(spans.map(({ name }) => name).join(" ")),
      contentType: "text/plain",
    }),
    trouble: (line) => void told.push(line),
    fetch: async (_url, init) => {
      bodies.push(new TextDecoder().decode(init?.body as Uint8Array))
      const answer = answers.shift() ?? 200
      if (answer instanceof Error) throw answer
      return new Response(null, { status: answer, headers: { "retry-after": "0" } })
    },
  })
  return { exporter, bodies, told }
}

describe("an exporter", () => {
  it("sends spans in batches, and what is left at its end", async () => {
    const { bodies, exporter, told } = exporting([])
    for (const name of ["a", "b", "c"]) exporter.push(span(name))
    await exporter.close(1_000)
    expect(bodies).toEqual(["a b", "c"])
    expect(told).toEqual([])
  })

  it("asks a collector again that was busy, tells of it once, and loses nothing", async () => {
    const { bodies, exporter, told } = exporting([503, 429, 200])
    exporter.push(span("a"))
    exporter.push(span("b"))
    while (bodies.length < 3) await new Promise((resolve) => setImmediate(resolve))
    await exporter.close(1_000)
    expect(bodies).toEqual(["a b", "a b", "a b"])
    expect(told).toEqual(["traces are not exported: the collector answered with status 503"])
    expect(exporter.dropped).toBe(0)
  })

  it("gives a batch up that is refused for good", async () => {
    const { bodies, exporter } = exporting([400])
    exporter.push(span("a"))
    exporter.push(span("b"))
    exporter.push(span("c"))
    await exporter.close(1_000)
    expect(bodies).toEqual(["a b", "c"])
    expect(exporter.dropped).toBe(2)
  })

  it("drops and counts what does not fit its queue, and never throws", async () => {
    const { bodies, exporter } = exporting([], { maxBatch: 100 })
    for (let at = 0; at < 10; at++) exporter.push(span(`s${at}`))
    expect(exporter.dropped).toBe(6)
    await exporter.close(1_000)
    expect(bodies).toEqual(["s0 s1 s2 s3"])
    exporter.push(span("late"))
    expect(exporter.dropped).toBe(7)
  })

  it("ends without a collector, asking it once", async () => {
    const away = Object.assign(new Error("fetch failed"), { cause: { code: "ECONNREFUSED" } })
    const { bodies, exporter, told } = exporting([away, away, away])
    exporter.push(span("a"))
    await exporter.close(1_000)
    expect(bodies).toEqual(["a"])
    expect(told).toEqual(["traces are not exported: the collector is not reachable (ECONNREFUSED)"])
  })

  it("ends by its deadline where the collector never answers", async () => {
    const exporter = new SpanExporter({
      settings: { ...limits, timeoutMs: 60_000 },
      encode: () => ({ body: new Uint8Array(), contentType: "text/plain" }),
      trouble: () => {},
      fetch: (_url, init) =>
        new Promise((_resolve, reject) => {
          init?.signal?.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")))
        }),
    })
    exporter.push(span("a"))
    await exporter.close(10)
    expect(exporter.dropped).toBe(1)
  })

  it("sends its headers and disturbs nobody where the collector fails", () =>
    Effect.gen(function* () {
      const received = yield* collector
      received.statuses = [500]
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: received.url,
        OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20abc",
      }
      const value = yield* Effect.scoped(underTracer(env, "1", Effect.withSpan(Effect.succeed(7), "work")))
      expect(value).toBe(7)
      expect(received.requests.map(({ headers }) => headers.authorization)).toEqual(["Basic abc"])
    }).pipe(Effect.scoped, Effect.runPromise))

  it("is not there where the configuration is wrong, and the work is done all the same", () =>
    Effect.gen(function* () {
      const wrong = { OTEL_EXPORTER_OTLP_ENDPOINT: "nowhere" }
      expect(yield* underTracer(wrong, "1", Effect.withSpan(Effect.succeed(7), "work"))).toBe(7)
    }).pipe(Effect.scoped, Effect.runPromise))
})

describe("a trace", () => {
  const kept = async (sampling: Sampling, sampled: boolean | null, spanId = "cd".repeat(8)) => {
    const spans: Array<EndedSpan> = []
    const tracer = exportingTracer(sampling, (one) => void spans.push(one))
    const parent = sampled === null ? Option.none() : parentOf({ traceId: "ab".repeat(16), spanId, sampled })
    const above = Option.getOrUndefined(parent)
    const outer = Effect.withSpan(
      Effect.withSpan(Effect.void, "inner"),
      "outer",
      above === undefined ? {} : { parent: above },
    )
    await Effect.runPromise(Effect.withTracer(outer, tracer))
    return spans
  }

  it("is kept or not as its caller decided, where the sampler asks the parent", async () => {
    expect(await kept({ parentBased: true, ratio: 1 }, false)).toEqual([])
    expect((await kept({ parentBased: true, ratio: 0 }, true)).map(({ name }) => name)).toEqual(["inner", "outer"])
    expect(await kept({ parentBased: true, ratio: 0 }, null)).toEqual([])
    expect(await kept({ parentBased: false, ratio: 1 }, false)).toHaveLength(2)
  })

  it("is kept whole, about as often as the ratio says", async () => {
    let whole = 0
    for (let at = 0; at < 400; at++) {
      const spans = await kept({ parentBased: true, ratio: 0.25 }, null)
      expect([0, 2]).toContain(spans.length)
      if (spans.length === 2) whole += 1
    }
    expect(whole).toBeGreaterThan(40)
    expect(whole).toBeLessThan(180)
  })

  it("that is named and not begun starts with a span that has no parent", async () => {
    const [, outer] = await kept({ parentBased: true, ratio: 1 }, true, noSpan)
    expect(outer).toMatchObject({ traceId: "ab".repeat(16), parentId: null })
  })

  it("tells failures by their code alone, and no log line", async () => {
    const spans: Array<EndedSpan> = []
    const tracer = exportingTracer({ parentBased: true, ratio: 1 }, (one) => void spans.push(one))
    const failing = Effect.zipRight(Effect.log("a secret"), Effect.fail(new Error("a secret"))).pipe(
      Effect.withSpan("failing"),
    )
    const exit = await Effect.runPromiseExit(Effect.withTracer(failing, tracer))
    expect(Exit.isFailure(exit)).toBe(true)
    expect(spans).toMatchObject([{ code: "Error" }])
    expect(JSON.stringify(spans, (_key, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
      "secret",
    )
  })
})
