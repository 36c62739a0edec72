/**
 * The span tree of turns as a collector receives it, on a node with scripted models.
 */
import { Context, Effect, Exit, Fiber, Layer, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { observedModels } from "../../src/actors/conversation/observe-models.ts"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import type { Event } from "../../src/domain/event.ts"
import type { ConversationId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { delegateTool } from "../../src/harness/plugins/subagent.ts"
import type { ModelRequest } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { gatewayRequest } from "../../src/observability/http.ts"
import { underTracer } from "../../src/observability/tracing.ts"
import { defineTool, toolFailure } from "../../src/tools/define.ts"
import { echo, type NodeOptions, nodeAt, open, prompt, scriptModel, until, withNode } from "../conversation/harness.ts"
import { type Collector, collector, type ReceivedSpan } from "./collector.ts"
import { Recorder } from "./recorder.ts"

/** Runs `use` on a node whose spans are exported; gives what was received once everything was flushed. */
const traced = <A>(
  options: NodeOptions,
  use: (sessions: SessionsService, path: string) => Effect.Effect<A, unknown>,
  env: Readonly<Record<string, string>> = {},
): Promise<{ readonly received: Collector; readonly value: A }> =>
  Effect.gen(function* () {
    const received = yield* collector
    const all = { OTEL_EXPORTER_OTLP_ENDPOINT: received.url, OTEL_SERVICE_NAME: "tested", ...env }
    const value = yield* Effect.scoped(underTracer(all, "1.2.3", withNode(options, use)))
    return { received, value }
  }).pipe(Effect.scoped, Effect.runPromise)

const named = ({ spans }: Collector, name: string): ReadonlyArray<ReceivedSpan> =>
  spans.filter((span) => span.name === name)

const only = (received: Collector, name: string): ReceivedSpan => {
  const [span, another] = named(received, name)
  if (span === undefined || another !== undefined) {
    throw new Error(`expected one span ${name}, got ${received.spans.map((one) => one.name).join(", ")}`)
  }
  return span
}

/** Who comes late sees it in the snapshot. */
const isStreaming = (event: Event): boolean =>
  event.type === "snapshot" ? event.session.partial?.text === "so far" : event.type === "text_delta"

const toolRules = [
  {
    match: "^use",
    steps: [
      { tools: [{ id: "call-7", name: "echo", args: { value: "x" } }], usage: [11, 5] },
      { text: "done", usage: [20, 3] },
    ],
  },
  { match: "", steps: [{ text: "hello", usage: [7, 2] }] },
]

describe("a turn", () => {
  it.each(["http/protobuf", "http/json"])(
    "is a span with its requests and calls below it, over %s",
    async (protocol) => {
      const { received } = await traced(
        { rules: toolRules },
        (sessions) => Effect.flatMap(open(sessions), (id) => prompt(sessions, id, "use a tool")),
        { OTEL_EXPORTER_OTLP_PROTOCOL: protocol, OTEL_RESOURCE_ATTRIBUTES: "deployment.environment=ci,team=a%20b" },
      )
      const turn = only(received, "super_pi.turn")
      const [first, second] = named(received, "chat script/test")
      const call = only(received, "execute_tool echo")
      expect(turn).toMatchObject({ parentId: "", status: { code: 0 }, events: 0 })
      expect(turn.attributes).toMatchObject({
        "gen_ai.conversation.id": "1",
        "gen_ai.request.model": "script/test",
        "super_pi.turn.status": "completed",
        "super_pi.turn.requests": 2,
      })
      for (const span of [first, second, call]) {
        expect(span).toMatchObject({ traceId: turn.traceId, parentId: turn.spanId, status: { code: 0 } })
      }
      expect(first).toMatchObject({ kind: 3 })
      expect(first?.attributes).toEqual({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "script",
        "gen_ai.system": "script",
        "gen_ai.request.model": "script/test",
        "gen_ai.request.stream": true,
        "gen_ai.conversation.id": "1",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
      })
      expect(second?.attributes).toMatchObject({ "gen_ai.usage.input_tokens": 20, "gen_ai.usage.output_tokens": 3 })
      expect(call.attributes).toMatchObject({
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "gen_ai.tool.call.id": "call-7",
        "gen_ai.conversation.id": "1",
        "super_pi.tool.is_error": false,
      })
      expect(received.resource).toEqual({
        "service.name": "tested",
        "service.version": "1.2.3",
        "deployment.environment": "ci",
        team: "a b",
      })
      expect(received.requests[0]?.url).toBe("/v1/traces")
    },
  )

  it("goes on with the trace of the HTTP request that it came with", async () => {
    const traceId = "ab".repeat(16)
    const request = {
      group: "openai",
      method: "POST",
      route: "/v1/chat/completions",
      requestId: "r",
      traceparent: `00-${traceId}-${"cd".repeat(8)}-01`,
    }
    const { received } = await traced({ rules: toolRules }, (sessions) =>
      Effect.flatMap(open(sessions), (id) => prompt(sessions, id, "hi").pipe(gatewayRequest(request, null))),
    )
    const gateway = only(received, "super_pi.gateway.request")
    const turn = only(received, "super_pi.turn")
    expect(gateway).toMatchObject({ traceId, parentId: "cd".repeat(8), kind: 2 })
    expect(turn).toMatchObject({ traceId, parentId: gateway.spanId })
    expect(only(received, "chat script/test")).toMatchObject({ traceId, parentId: turn.spanId })
  })

  it("that fails is an error by its code, and so is what failed in it", async () => {
    const rules = [
      { match: "^busy", steps: [{ status: 429, message: "secret", times: 1, text: "after all" }] },
      { match: "", steps: [{ status: 400, message: "secret" }] },
    ]
    const { received } = await traced({ rules }, (sessions) =>
      Effect.forEach(["fail", "busy"], (said) => Effect.flatMap(open(sessions), (id) => prompt(sessions, id, said))),
    )
    const failed = named(received, "super_pi.turn").find((span) => span.status.code === 2)
    expect(failed?.status.message).toBe("model_rejected")
    const requests = named(received, "chat script/test").map(({ attributes, status }) => [
      status.message,
      attributes["error.type"] ?? "",
    ])
    expect(requests.sort()).toEqual([
      ["", ""],
      ["model_rejected", "model_rejected"],
      ["rate_limited", "rate_limited"],
    ])
    expect(named(received, "super_pi.turn")).toHaveLength(2)
  })

  it("that is cancelled is no error", async () => {
    const rules = [{ match: "", steps: [{ text: "so far", hang: true }] }]
    const { received } = await traced({ rules }, (sessions) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        const ended = yield* Effect.fork(prompt(sessions, conversationId, "go"))
        yield* until(sessions, conversationId, isStreaming)
        yield* sessions.cancel({ conversationId })
        yield* Fiber.join(ended)
      }),
    )
    expect(only(received, "super_pi.turn")).toMatchObject({
      status: { code: 0 },
      attributes: { "super_pi.turn.status": "cancelled", "super_pi.interrupted": true },
    })
    expect(only(received, "chat script/test").attributes).toMatchObject({ "super_pi.interrupted": true })
  })

  it("that another life takes up stays in its trace, and says that it was resumed", async () => {
    const { received } = await traced({ rules: [] }, (_sessions, beside) => {
      const path = `${beside}.lives`
      const life = <A>(step: Record<string, unknown>, use: (sessions: SessionsService) => Effect.Effect<A, unknown>) =>
        Layer.build(nodeAt(path, { rules: [{ match: "", steps: [step] }] })).pipe(
          Effect.flatMap((context) => use(Context.get(context, Sessions))),
          Effect.scoped,
        )
      return Effect.gen(function* () {
        const begun = yield* life({ text: "so far", hang: true }, (sessions) =>
          Effect.gen(function* () {
            const conversationId = yield* open(sessions)
            const input = { conversationId, content: [text("go")], requestId: null }
            const { submission_id } = yield* sessions.submit(input)
            yield* until(sessions, conversationId, isStreaming)
            return { conversationId, submissionId: submission_id }
          }),
        )
        yield* life({ text: "whole" }, (sessions) => sessions.awaitSubmission(begun))
      })
    })
    const turns = named(received, "super_pi.turn")
    expect(turns.map(({ attributes }) => attributes["super_pi.turn.status"])).toEqual(["interrupted", "completed"])
    expect(new Set(turns.map(({ traceId }) => traceId)).size).toBe(1)
    expect(turns[1]?.attributes).toMatchObject({ "super_pi.resumed": true })
  })

  it("of a subagent is below the turn that asked for it", async () => {
    const order = { role: "scout", task: "look" }
    const rules = [
      { match: "^go$", steps: [{ tools: [{ name: "delegate_subagent", args: { tasks: [order] } }] }] },
      { match: "^Subagent ", steps: [{ text: "all done" }] },
      { match: "^look", steps: [{ text: "fine" }] },
    ]
    const tools = [echo, delegateTool({ maxDepth: 1, timeoutMs: 60_000 })]
    const { received } = await traced({ rules, tools }, (sessions) =>
      Effect.flatMap(open(sessions), (id) => prompt(sessions, id, "go")),
    )
    const turns = named(received, "super_pi.turn")
    const parent = turns.find(({ attributes }) => attributes["gen_ai.conversation.id"] === "1")
    const child = turns.find(({ attributes }) => attributes["gen_ai.conversation.id"] !== "1")
    expect(child).toMatchObject({ traceId: parent?.traceId, parentId: parent?.spanId })
    expect(only(received, "super_pi.job").attributes).toMatchObject({ "super_pi.queue": "subagents" })
  })

  it("compacts under a span of its own", async () => {
    const rules = [{ match: "", steps: [{ text: "an answer that is long enough to be made short" }] }]
    const { received } = await traced({ rules, policy: { compaction: { keepRecentTokens: 1 } } }, (sessions) =>
      Effect.gen(function* () {
        const conversationId = yield* open(sessions)
        yield* prompt(sessions, conversationId, "one")
        yield* prompt(sessions, conversationId, "two")
        yield* sessions.compact({ conversationId, instructions: null })
      }),
    )
    const compaction = only(received, "super_pi.compaction")
    expect(compaction.attributes).toMatchObject({ "super_pi.compaction.reason": "manual" })
    const below = named(received, "chat script/test").filter(({ parentId }) => parentId === compaction.spanId)
    expect(below).toHaveLength(1)
  })
})

describe("what was said", () => {
  const marker = fc.stringMatching(/^[A-Za-z0-9]{12,20}$/)

  it("is in no span, whether it went well or wrong, for the collector and for an application's own tracer", () =>
    fc.assert(
      fc.asyncProperty(marker, async (secret) => {
        const leaky = defineTool({
          name: "leaky",
          description: "Fails with what it was given.",
          parameters: Schema.Struct({ value: Schema.String, how: Schema.Literal("fail", "die", "return") }),
          effects: ["read"],
          execute: ({ how, value }) =>
            how === "return"
              ? Effect.as(Effect.logWarning(`log ${value}`), { output: [text(value)], details: { value } })
              : how === "fail"
                ? Effect.fail(toolFailure("leaky", value))
                : Effect.die(new Error(value)),
        })
        const ask = (how: string) => ({ tools: [{ name: "leaky", args: { value: secret, how } }] })
        const rules = [
          { match: "fails$", steps: [{ status: 400, message: secret }] },
          { match: "", steps: [ask("return"), ask("fail"), ask("die"), { text: secret }] },
        ]
        const use = (sessions: SessionsService) =>
          Effect.gen(function* () {
            const id = yield* open(sessions)
            yield* prompt(sessions, id, secret)
            yield* prompt(sessions, id, `${secret} fails`)
            yield* Effect.exit(
              sessions.open({ conversationId: null, agent: { cwd: `/${secret}` }, title: secret, requestId: secret }),
            )
          })
        const options = { rules, tools: [leaky] }
        const { received } = await traced(options, use)
        const recorder = new Recorder()
        await Effect.runPromise(Effect.withTracer(withNode(options, use), recorder.tracer))
        expect(named(received, "super_pi.turn")).toHaveLength(2)
        expect(recorder.named("execute_tool leaky")).toHaveLength(3)
        const bytes = received.requests.map((request) => request.bytes.toString("latin1")).join("\n")
        expect(bytes).not.toContain(secret)
        const kept = recorder.spans.map(({ events: _logged, exit, ...span }) => ({
          ...span,
          cause: Exit.isFailure(exit) ? String(exit.cause) : null,
        }))
        expect(JSON.stringify(kept)).not.toContain(secret)
      }),
      { numRuns: 3 },
    ))
})

describe("a request to a model", () => {
  it("carries the traceparent of its span where that is wanted, and else none", async () => {
    const recorder = new Recorder()
    const asked: Array<string | undefined> = []
    const models = makeModels({ env: {}, model: scriptModel, script: { rules: [] } })
    const kept = {
      ...models,
      respond: ({ traceparent }: ModelRequest) => Effect.sync(() => void asked.push(traceparent)),
    }
    for (const propagate of [true, false]) {
      const clock = await Effect.runPromise(Effect.clock)
      const watching = { tracer: recorder.tracer, observer: null, clock, node: "n" }
      const seen = observedModels(kept, watching, { conversation: 1 as ConversationId, propagate })
      const request = seen.respond({ model: scriptModel, messages: [] }, () => Effect.void)
      await Effect.runPromise(Effect.withTracer(request, recorder.tracer))
    }
    const [first] = recorder.named(`chat ${scriptModel}`)
    expect(asked).toEqual([`00-${first?.traceId}-${first?.spanId}-01`, undefined])
  })
})
