/**
 * What OpenTelemetry's environment variables come to.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseTraceparent } from "../../src/domain/trace-context.ts"
import { type TraceSettings, traceConfig } from "../../src/observability/settings.ts"

const endpoint = "http://localhost:4318"

const settings = (env: Record<string, string>): TraceSettings => {
  const config = traceConfig({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...env }, "1.0.0")
  if (config.type !== "on") throw new Error(JSON.stringify(config))
  return config.settings
}

describe("the configuration of traces", () => {
  it("is off until a collector is named, and where it is switched off", () => {
    const off = (env: Record<string, string>) => traceConfig(env, "1").type
    expect(off({})).toBe("off")
    expect(off({ OTEL_EXPORTER_OTLP_ENDPOINT: "" })).toBe("off")
    expect(off({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: "true" })).toBe("off")
    expect(off({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_EXPORTER: "none" })).toBe("off")
  })

  it("has the defaults of the specification", () => {
    expect(settings({})).toEqual({
      url: "http://localhost:4318/v1/traces",
      protocol: "http/protobuf",
      headers: {},
      timeoutMs: 10_000,
      resource: { "service.name": "super-pi", "service.version": "1.0.0" },
      sampling: { parentBased: true, ratio: 1 },
      maxQueue: 2_048,
      maxBatch: 512,
      intervalMs: 5_000,
    })
  })

  it("takes the signal's own variables before the common ones, and its endpoint as it is", () => {
    const own = settings({
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "https://collector.example/custom",
      OTEL_EXPORTER_OTLP_HEADERS: "a=1,b=two%20words",
      OTEL_EXPORTER_OTLP_TRACES_HEADERS: "a=2, not a pair ,=x",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_TIMEOUT: "1",
      OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "250",
    })
    expect(own).toMatchObject({
      url: "https://collector.example/custom",
      headers: { a: "2", b: "two words" },
      protocol: "http/json",
      timeoutMs: 250,
    })
    expect(settings({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://c:4318/base/" }).url).toBe("http://c:4318/base/v1/traces")
  })

  it("names the service by its own variable, then by the resource", () => {
    const attributes = { OTEL_RESOURCE_ATTRIBUTES: "service.name=fromResource,team=a" }
    expect(settings(attributes).resource).toMatchObject({ "service.name": "fromResource", team: "a" })
    expect(settings({ ...attributes, OTEL_SERVICE_NAME: "own" }).resource["service.name"]).toBe("own")
  })

  it.each([
    ["OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "an http or https URL"],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf or http/json"],
    ["OTEL_TRACES_SAMPLER", "sometimes", "one of always_on"],
    ["OTEL_TRACES_SAMPLER_ARG", "2", "a number from 0 to 1"],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "a whole number of at least 1"],
    ["OTEL_BSP_MAX_QUEUE_SIZE", "0", "a whole number of at least 1"],
  ])("says which variable is wrong: %s=%s", (name, value, expected) => {
    const env = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_TRACES_SAMPLER: "traceidratio", [name]: value }
    const config = traceConfig(env, "1")
    expect(config).toMatchObject({ type: "wrong" })
    const fault = config.type === "wrong" ? config.fault : ""
    expect(fault.startsWith(`${name}: expected ${expected}`)).toBe(true)
    expect(fault.endsWith(`got ${JSON.stringify(value)}`)).toBe(true)
  })

  it("is read from any text without an exception", () => {
    const names = [
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
      "OTEL_EXPORTER_OTLP_HEADERS",
      "OTEL_RESOURCE_ATTRIBUTES",
      "OTEL_TRACES_SAMPLER",
      "OTEL_TRACES_SAMPLER_ARG",
      "OTEL_BSP_SCHEDULE_DELAY",
    ]
    const env = fc.dictionary(
      fc.constantFrom(...names),
      fc.oneof(fc.string(), fc.constant("traceidratio"), fc.webUrl()),
    )
    fc.assert(fc.property(env, (some) => ["off", "on", "wrong"].includes(traceConfig(some, "1").type)))
  })
})

describe("a traceparent", () => {
  const traceId = "ab".repeat(16)
  const spanId = "cd".repeat(8)

  it("is read as W3C Trace Context says, also of later versions", () => {
    expect(parseTraceparent(`00-${traceId}-${spanId}-01`)).toEqual({ traceId, spanId, sampled: true })
    expect(parseTraceparent(`00-${traceId}-${spanId}-00`)).toEqual({ traceId, spanId, sampled: false })
    expect(parseTraceparent(`cc-${traceId}-${spanId}-01-more`)).toEqual({ traceId, spanId, sampled: true })
  })

  it.each([
    `00-${traceId}-${spanId}-01-more`,
    `ff-${traceId}-${spanId}-01`,
    `00-${"0".repeat(32)}-${spanId}-01`,
    `00-${traceId.toUpperCase()}-${spanId}-01`,
    `00-${traceId}-${spanId}`,
    "",
    42,
    undefined,
  ])("that is none is none: %s", (header) => {
    expect(parseTraceparent(header)).toBeNull()
  })

  it("is read from anything in no time", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.anything()), (header) => {
        const found = parseTraceparent(header)
        return found === null || found.traceId.length === 32
      }),
    )
  })
})
