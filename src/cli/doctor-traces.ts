/**
 * Whether traces are configured, and whether the collector takes them: asked with an export of nothing.
 */
import { Effect } from "effect"
import { type TraceSettings, traceConfig } from "../observability/settings.ts"
import { type Check, ok, warn } from "./check.ts"
import { version } from "./package.ts"

/** How long the collector may take, in ms. */
const askMs = 3_000

/** The place without what may be a secret in it. */
const shown = (url: string): string => {
  const { host, pathname, protocol } = new URL(url)
  return `${protocol}//${host}${pathname}`
}

const ask = ({ headers, protocol, url }: TraceSettings): Promise<Check> => {
  const json = protocol === "http/json"
  return fetch(url, {
    method: "POST",
    headers: { ...headers, "content-type": json ? "application/json" : "application/x-protobuf" },
    body: json ? '{"resourceSpans":[]}' : new Uint8Array(),
    redirect: "manual",
    signal: AbortSignal.timeout(askMs),
  }).then(
    (response) => {
      if (response.ok) return ok("traces", `exported to ${shown(url)}`)
      const refused = response.status === 401 || response.status === 403
      const advice = refused ? "set OTEL_EXPORTER_OTLP_HEADERS" : "check OTEL_EXPORTER_OTLP_ENDPOINT"
      return warn("traces", `the collector at ${shown(url)} answered with status ${response.status}`, advice)
    },
    () => warn("traces", `no collector answers at ${shown(url)}`, "start it, or check OTEL_EXPORTER_OTLP_ENDPOINT"),
  )
}

export const checkTraces = (env: Readonly<Record<string, string | undefined>>): Effect.Effect<Check> => {
  const config = traceConfig(env, version())
  switch (config.type) {
    case "off":
      return Effect.succeed(ok("traces", `off (${config.why})`))
    case "wrong":
      return Effect.succeed(warn("traces", config.fault, "traces are off until it is repaired"))
    case "on":
      return Effect.promise(() => ask(config.settings))
  }
}
