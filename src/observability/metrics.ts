/**
 * The metrics of a process in a registry of their own, written in the text format of Prometheus. They are made when somebody asks for them
 * (a gateway): before, nothing is counted. An event is an increment in place; what the node knows anyway (queues, actors) is read when the
 * metrics are. docs/observability.md lists them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client"
import { costOf, type Prices } from "../domain/budget.ts"
import { boundedLabel } from "./labels.ts"
import { type NodeFacts, nodeGauges } from "./node-gauges.ts"
import type { NodeProbe, Observer } from "./observer.ts"

/** Upper bounds of durations, in ms: of calls of a few ms, and of turns of minutes. */
const durationsMs = [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000]
/** The same in seconds. */
const secondsOf = (ms: ReadonlyArray<number>): Array<number> => ms.map((one) => one / 1_000)
/** Of commits, in seconds. */
const commitSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2]

export interface MetricsOptions {
  readonly version: string
  /** For costs. Default none. */
  readonly prices?: Prices
  /** Metrics of Node.js itself: memory, CPU, event loop. Default true. */
  readonly runtime?: boolean
}

export interface Metrics {
  readonly observer: Observer
  /** The text of `GET /metrics`; `facts` are what the node knows now, null where it cannot be asked. */
  readonly render: (facts: NodeFacts | null) => Promise<string>
  readonly contentType: string
}

const makeSeries = (registry: Registry) => {
  const registers = [registry]
  const counter = <L extends string>(name: string, help: string, labelNames: ReadonlyArray<L>) =>
    new Counter<L>({ name, help, labelNames: [...labelNames], registers })
  const gauge = <L extends string>(name: string, help: string, labelNames: ReadonlyArray<L>) =>
    new Gauge<L>({ name, help, labelNames: [...labelNames], registers })
  const histogram = <L extends string>(
    name: string,
    help: string,
    labelNames: ReadonlyArray<L>,
    bounds = durationsMs,
  ) => new Histogram<L>({ name, help, labelNames: [...labelNames], buckets: [...bounds], registers })
  const model = ["model"] as const
  const ended = ["model", "status"] as const
  const tool = ["tool", "status"] as const
  return {
    turns: counter("super_pi_turn_total", "Runs that ended, by the model asked last.", ended),
    turnMs: histogram("super_pi_turn_duration_milliseconds", "How long runs took.", ended),
    requests: counter("super_pi_llm_requests_total", "Requests to models.", ended),
    requestMs: histogram("super_pi_llm_duration_milliseconds", "How long requests to models took.", ended),
    first: histogram(
      "super_pi_llm_first_part_seconds",
      "Time until the first part of an answer.",
      model,
      secondsOf(durationsMs),
    ),
    input: counter("super_pi_llm_input_tokens", "Tokens sent to models, cached ones included.", model),
    output: counter("super_pi_llm_output_tokens", "Tokens that models wrote.", model),
    cached: counter("super_pi_llm_cached_tokens_total", "Input tokens read from, or written to, a cache.", [
      "model",
      "kind",
    ]),
    cost: counter("super_pi_llm_cost_dollars_total", "US dollars, of models that have a price.", model),
    tools: counter("super_pi_tool_calls_total", "Calls of tools that ended.", tool),
    toolMs: histogram("super_pi_tool_duration_milliseconds", "How long calls of tools took.", tool),
    retries: counter("super_pi_llm_retries_total", "Requests that are made again after a passing failure.", model),
    compactions: counter("super_pi_compactions_total", "Compactions that ended.", ["reason", "method", "status"]),
    questions: counter("super_pi_questions_total", "Questions to a person.", ["kind"]),
    questionEnds: counter("super_pi_question_ends_total", "Questions that are over.", ["result"]),
    conversations: gauge("super_pi_conversations_open", "Conversations in memory.", []),
    watchers: gauge("super_pi_watchers", "Connected watchers of conversations.", []),
    commits: counter("super_pi_store_commits_total", "Commits of the store.", ["status"]),
    commitTime: histogram("super_pi_store_commit_seconds", "How long commits took.", [], commitSeconds),
    http: counter("super_pi_http_requests_total", "Answered HTTP requests.", ["group", "method", "route", "status"]),
    httpTime: histogram(
      "super_pi_http_request_seconds",
      "Time to the answer, of a stream to its head.",
      ["group"],
      secondsOf(durationsMs),
    ),
    streams: gauge("super_pi_http_streams", "Open streams of server-sent events.", ["group"]),
    build: gauge("super_pi_build_info", "Always 1; says what runs.", ["version", "node"]),
  }
}

export const makeMetrics = ({ prices = {}, runtime = true, version }: MetricsOptions): Metrics => {
  const registry = new Registry()
  const series = makeSeries(registry)
  const gauges = nodeGauges(registry)
  if (runtime) collectDefaultMetrics({ register: registry })
  series.build.set({ version, node: process.version }, 1)
  const modelLabel = boundedLabel()
  const toolLabel = boundedLabel()
  const statusLabel = boundedLabel(50)
  let probe: NodeProbe | null = null

  const observer: Observer = {
    turnEnded: (name, status, ms) => {
      const labels = { model: modelLabel(name), status }
      series.turns.inc(labels)
      series.turnMs.observe(labels, ms)
    },
    requestEnded: ({ durationMs, firstMs, model: name, status, usage }) => {
      const model = modelLabel(name)
      const labels = { model, status: statusLabel(status) }
      series.requests.inc(labels)
      series.requestMs.observe(labels, durationMs)
      if (firstMs !== null) series.first.observe({ model }, firstMs / 1_000)
      if (usage === null) return
      series.input.inc({ model }, usage.input)
      series.output.inc({ model }, usage.output)
      if (usage.cacheRead > 0) series.cached.inc({ model, kind: "read" }, usage.cacheRead)
      if (usage.cacheWrite > 0) series.cached.inc({ model, kind: "write" }, usage.cacheWrite)
      const price = prices[name]
      if (price !== undefined) series.cost.inc({ model }, costOf(usage, price))
    },
    toolEnded: (name, status, ms) => {
      const labels = { tool: toolLabel(name), status }
      series.tools.inc(labels)
      series.toolMs.observe(labels, ms)
    },
    retried: (model) => series.retries.inc({ model: modelLabel(model) }),
    compacted: (reason, method, status) => series.compactions.inc({ reason, method, status }),
    asked: (kind) => series.questions.inc({ kind }),
    questionEnded: (result) => series.questionEnds.inc({ result }),
    node: (found) => {
      probe = found
    },
    conversations: (change) => series.conversations.inc(change),
    watchers: (change) => series.watchers.inc(change),
    committed: (status, ms) => {
      series.commits.inc({ status })
      series.commitTime.observe(ms / 1_000)
    },
    httpEnded: ({ durationMs, group, method, route, status }) => {
      series.http.inc({ group, method: methodLabel(method), route, status: String(status) })
      series.httpTime.observe({ group }, durationMs / 1_000)
    },
    streams: (group, change) => series.streams.inc({ group }, change),
  }
  return {
    observer,
    contentType: registry.contentType,
    render: (facts) => {
      gauges.update(facts, probe)
      return registry.metrics()
    },
  }
}

/** A client may name any method. */
const methods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
const methodLabel = (method: string): string => (methods.has(method) ? method : "other")
