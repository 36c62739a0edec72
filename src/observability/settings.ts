/**
 * Where spans go, from OpenTelemetry's environment variables. Traces are off until an endpoint is named. A value that cannot be read is a
 * fault that is told, and traces stay off: observing never keeps the program from running.
 */
type Env = Readonly<Record<string, string | undefined>>

/** Which traces are kept. `ratio` counts where there is no parent, or always where the parent is not asked. */
export interface Sampling {
  readonly parentBased: boolean
  /** 0 to 1. */
  readonly ratio: number
}

export interface TraceSettings {
  /** Whole URL, for example `http://localhost:4318/v1/traces`. */
  readonly url: string
  readonly protocol: "http/protobuf" | "http/json"
  readonly headers: Readonly<Record<string, string>>
  /** Of one request, in ms. */
  readonly timeoutMs: number
  readonly resource: Readonly<Record<string, string>>
  readonly sampling: Sampling
  /** Spans that wait at most; more are dropped and counted. */
  readonly maxQueue: number
  readonly maxBatch: number
  /** Between exports, in ms. */
  readonly intervalMs: number
}

export type TraceConfig =
  | { readonly type: "off"; readonly why: string }
  | { readonly type: "on"; readonly settings: TraceSettings }
  /** `NAME: expected X, got Y`. */
  | { readonly type: "wrong"; readonly fault: string }

/** Empty counts as unset, as the specification wants. */
const value = (env: Env, name: string): string | undefined => {
  const found = env[name]?.trim()
  return found === "" ? undefined : found
}

class Fault extends Error {}

const fault = (name: string, expected: string, actual: string): Fault =>
  new Fault(`${name}: expected ${expected}, got ${JSON.stringify(actual)}`)

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** `a=b,c=d`, values percent-encoded. What is no pair is left out. */
const pairs = (text: string | undefined): Readonly<Record<string, string>> =>
  Object.fromEntries(
    (text ?? "")
      .split(",")
      .map((part): readonly [string, string] => {
        const at = part.indexOf("=")
        return at < 1 ? ["", ""] : [part.slice(0, at).trim(), decoded(part.slice(at + 1).trim())]
      })
      .filter(([key]) => key !== ""),
  )

const whole = (env: Env, names: ReadonlyArray<string>, usual: number): number => {
  const name = names.find((one) => value(env, one) !== undefined)
  if (name === undefined) return usual
  const text = value(env, name) ?? ""
  if (!/^[1-9]\d{0,8}$/.test(text)) throw fault(name, "a whole number of at least 1", text)
  return Number(text)
}

/** The signal's own endpoint as it is, or the common one with the signal's path. Null where neither is named. */
const urlOf = (env: Env): string | null => {
  const own = value(env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
  const common = value(env, "OTEL_EXPORTER_OTLP_ENDPOINT")
  const name = own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
  const text = own ?? common
  if (text === undefined) return null
  const url = own ?? `${text.replace(/\/+$/, "")}/v1/traces`
  if (!/^https?:\/\/[^/?#]+/i.test(url) || !URL.canParse(url)) throw fault(name, "an http or https URL", text)
  return url
}

const protocolOf = (env: Env): TraceSettings["protocol"] => {
  const names = ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"]
  const name = names.find((one) => value(env, one) !== undefined)
  const text = name === undefined ? "http/protobuf" : value(env, name)
  if (text === "http/protobuf" || text === "http/json") return text
  throw fault(name ?? "", "http/protobuf or http/json", text ?? "")
}

const samplers: Readonly<Record<string, readonly [parentBased: boolean, ratio: "all" | "none" | "argument"]>> = {
  always_on: [false, "all"],
  always_off: [false, "none"],
  traceidratio: [false, "argument"],
  parentbased_always_on: [true, "all"],
  parentbased_always_off: [true, "none"],
  parentbased_traceidratio: [true, "argument"],
}

const samplingOf = (env: Env): Sampling => {
  const name = value(env, "OTEL_TRACES_SAMPLER") ?? "parentbased_always_on"
  const found = samplers[name]
  if (found === undefined) throw fault("OTEL_TRACES_SAMPLER", `one of ${Object.keys(samplers).join(", ")}`, name)
  const [parentBased, kind] = found
  if (kind !== "argument") return { parentBased, ratio: kind === "all" ? 1 : 0 }
  const text = value(env, "OTEL_TRACES_SAMPLER_ARG") ?? "1"
  const ratio = Number(text)
  if (!(ratio >= 0 && ratio <= 1)) throw fault("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", text)
  return { parentBased, ratio }
}

/** `version` is the program's. */
export const traceConfig = (env: Env, version: string): TraceConfig => {
  const disabled = value(env, "OTEL_SDK_DISABLED")
  if (disabled?.toLowerCase() === "true") return { type: "off", why: "OTEL_SDK_DISABLED is true" }
  const exporter = value(env, "OTEL_TRACES_EXPORTER")
  if (exporter === "none") return { type: "off", why: "OTEL_TRACES_EXPORTER is none" }
  try {
    const url = urlOf(env)
    if (url === null) return { type: "off", why: "OTEL_EXPORTER_OTLP_ENDPOINT is not set" }
    const { "service.name": named, ...attributes } = pairs(value(env, "OTEL_RESOURCE_ATTRIBUTES"))
    return {
      type: "on",
      settings: {
        url,
        protocol: protocolOf(env),
        headers: {
          ...pairs(value(env, "OTEL_EXPORTER_OTLP_HEADERS")),
          ...pairs(value(env, "OTEL_EXPORTER_OTLP_TRACES_HEADERS")),
        },
        timeoutMs: whole(env, ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"], 10_000),
        resource: {
          "service.version": version,
          ...attributes,
          "service.name": value(env, "OTEL_SERVICE_NAME") ?? named ?? "super-pi",
        },
        sampling: samplingOf(env),
        maxQueue: whole(env, ["OTEL_BSP_MAX_QUEUE_SIZE"], 2_048),
        maxBatch: whole(env, ["OTEL_BSP_MAX_EXPORT_BATCH_SIZE"], 512),
        intervalMs: whole(env, ["OTEL_BSP_SCHEDULE_DELAY"], 5_000),
      },
    }
  } catch (error) {
    if (error instanceof Fault) return { type: "wrong", fault: error.message }
    throw error
  }
}
