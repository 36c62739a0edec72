/**
 * Hooks of requests and calls in conversations as their callers see them: real actors, a scripted model, plugins of the test.
 */
import { Effect, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { text, textOf } from "../../src/domain/message.ts"
import { callEcho, plugin, results, run, talk } from "./pipeline-support.ts"

describe("beforeTool", () => {
  it("blocks a call, and the reason and the rule stay with it", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: [
          plugin("guard", {
            beforeTool: ({ name }) => Effect.succeed({ type: "block", rule: "no echo", reason: `never ${name}` }),
          }),
        ],
      },
      (superPi, sessions) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          const entries = yield* conversation.transcript
          expect(results(entries)).toEqual(["never echo"])
          const call = entries.flatMap((one) => one.model).find((one) => one.role === "tool")
          const why = yield* sessions.why({
            conversationId: conversation.id,
            call: call?.role === "tool" ? call.callId : "",
          })
          expect(why).toMatchObject({
            outcome: "blocked",
            tool: "echo",
            trail: [{ plugin: "guard", hook: "beforeTool", decision: "block", rule: "no echo", reason: "never echo" }],
          })
        }),
    ))

  it("that fails blocks the call and is reported once", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: [
          plugin("broken", {
            beforeTool: () => {
              throw new Error("oh no")
            },
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          expect(results(yield* conversation.transcript)[0]).toContain("broken could not judge the call: oh no")
        }),
    ))

  it("puts rewritten arguments to every plugin again, and the intent is what they agreed to", () => {
    const seen: Array<string> = []
    return run(
      {
        rules: callEcho("one"),
        plugins: [
          plugin("watch", {
            beforeTool: ({ args }) => {
              seen.push(String(args.value))
              return Effect.succeed(undefined)
            },
          }),
          plugin("rewrite", {
            beforeTool: () => Effect.succeed({ type: "rewrite", rule: "two", args: { value: "two" } }),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          expect(results(yield* conversation.transcript)).toEqual(["echo: two"])
          expect(seen).toEqual(["one", "two"])
        }),
    )
  })
})

describe("wrapTool and afterTool", () => {
  it("nest in order around the code, and what each did is in the trail", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: ["a", "b"].map((name) =>
          plugin(name, {
            wrapTool: (_call, code) =>
              Effect.map(code, (result) => ({ ...result, output: [text(`${name}(${textOf(result.output)})`)] })),
            afterTool: (_call, result) =>
              Effect.succeed({ ...result, output: [text(`${textOf(result.output)}+${name}`)] }),
          }),
        ),
      },
      (superPi, sessions) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          const entries = yield* conversation.transcript
          expect(results(entries)).toEqual(["a(b(echo: x))+a+b"])
          const call = entries.flatMap((one) => one.model).find((one) => one.role === "tool")
          const why = yield* sessions.why({
            conversationId: conversation.id,
            call: call?.role === "tool" ? call.callId : "",
          })
          expect(why.outcome).toBe("completed")
          expect(why.trail.map(({ decision, hook, plugin: by }) => `${by} ${hook} ${decision}`)).toEqual([
            "b wrapTool changed",
            "a wrapTool changed",
            "a afterTool changed",
            "b afterTool changed",
          ])
        }),
    ))

  it("keeps the call's result where a wrapper breaks afterwards, and runs the call where it breaks before", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: [
          plugin("late", { wrapTool: (_call, code) => Effect.zipRight(code, Effect.fail(new Error("after"))) }),
          plugin("early", { wrapTool: () => Effect.fail(new Error("before")) }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          expect(results(yield* conversation.transcript)).toEqual(["echo: x"])
        }),
    ))

  it("stops waiting for a wrapper that never ends before it runs the call", () =>
    run(
      { rules: callEcho("x"), plugins: [plugin("stuck", { wrapTool: () => Effect.never }, { deadlineMs: 20 })] },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          expect(results(yield* conversation.transcript)).toEqual(["echo: x"])
        }),
    ))
})

describe("beforeRequest", () => {
  it("sets sections that stay in force, and messages of one request only", () => {
    const sent: Array<string> = []
    return run(
      {
        rules: callEcho("x"),
        plugins: [
          plugin("sections", {
            beforeRequest: ({ messages, turn }) =>
              Effect.succeed({
                ...(turn === 1 ? { sections: { extra: "be brief" } } : {}),
                messages: [{ role: "user" as const, content: [text(`turn ${turn}`)] }, ...messages],
              }),
            beforeProviderRequest: (request) => {
              sent.push(request.messages.map((one) => (one.role === "user" ? textOf(one.content) : "")).join(""))
              return Effect.succeed(undefined)
            },
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          const entries = yield* conversation.transcript
          const system = entries.filter((one) => one.kind === "pi.system")
          expect(system).toHaveLength(1)
          const first = system[0]?.model[0]
          const sections = first?.role === "system" ? first.sections.map(({ name }) => name) : []
          expect(sections).toContain("extra")
          expect(first?.role === "system" ? first.sections[0]?.text : "").toBe("You are a test.")
          expect(sent).toEqual(["turn 1go", "turn 2go"])
          expect(entries.filter((one) => one.kind === "pi.user")).toHaveLength(1)
        }),
    )
  })

  it("offers fewer tools for a request, and beforeAgentStart changes the choices before it", () =>
    run(
      {
        rules: talk,
        plugins: [
          plugin("start", {
            beforeAgentStart: ({ inputs }) => Effect.succeed({ agent: { instructions: `asked ${inputs.length}` } }),
            beforeRequest: () => Effect.succeed({ tools: [] }),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          const system = (yield* conversation.transcript).find((one) => one.kind === "pi.system")?.model[0]
          if (system?.role !== "system") throw new Error("no system message")
          expect(system.addTools).toEqual([])
          expect(system.sections.find(({ name }) => name === "instructions")?.text).toBe("asked 1")
        }),
    ))
})

describe("afterResponse", () => {
  it("changes what is committed of a response", () =>
    run(
      {
        rules: talk,
        plugins: [
          plugin("redact", {
            afterResponse: ({ content }) =>
              Effect.succeed({
                content: content.map((part) =>
                  part.type === "text" ? { ...part, text: part.text.toUpperCase() } : part,
                ),
              }),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          expect((yield* conversation.ask("go")).text).toBe("ANSWER")
        }),
    ))
})

describe("a plugin's failure", () => {
  it("is told once to the watchers and costs nothing but its own answer", () =>
    run(
      {
        rules: callEcho("x"),
        plugins: [plugin("broken", { beforeRequest: () => Effect.fail(new Error("no")) })],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          const notices: Array<string> = []
          yield* Stream.runForEach(conversation.run("go"), (event) =>
            Effect.sync(() => {
              if (event.type === "notice") notices.push(event.message)
            }),
          )
          expect(notices).toHaveLength(1)
          expect(notices[0]).toContain("plugin broken: beforeRequest failed: no; it is skipped (reference ")
        }),
    ))
})
