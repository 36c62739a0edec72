/**
 * Hooks of inputs, answers, runs and compactions in conversations as their callers see them, and over restarts of the node.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, FiberId, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import type { Entry } from "../../src/domain/entry.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { defineTool } from "../../src/tools/define.ts"
import type { Tool } from "../../src/tools/tool.ts"
import { callEcho, plugin, run, talk } from "./pipeline-support.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-run-hooks-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
let databases = 0
const database = (): string => join(directory, `${++databases}.db`)

const asked = (entries: ReadonlyArray<Entry>) =>
  entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "user" ? [textOf(one.content)] : [])))

/** Stands for the real one: says what it was asked, and counts. */
const shell = () => {
  const ran: Array<string> = []
  const tool: Tool = defineTool({
    name: "bash",
    description: "Runs a command.",
    parameters: Schema.Struct({ command: Schema.String, timeout: Schema.optional(Schema.Number) }),
    effects: ["exec"],
    execute: ({ command }) =>
      Effect.sync(() => {
        ran.push(command)
        return { output: [text(`<${command}>`)] }
      }),
  })
  return { ran, tool }
}

describe("onInput", () => {
  it("changes an input and the choices with it, one plugin after the other", () =>
    run(
      {
        rules: talk,
        plugins: [
          plugin("first", {
            onInput: ({ content }) =>
              Effect.succeed({ content: [text(`${textOf(content)} one`)], agent: { instructions: "be brief" } }),
          }),
          plugin("second", { onInput: ({ content }) => Effect.succeed({ content: [text(`${textOf(content)} two`)] }) }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          expect((yield* conversation.ask("say")).text).toBe("answer")
          const entries = yield* conversation.transcript
          expect(asked(entries)).toEqual(["say one two"])
          const system = entries.flatMap((one) => one.model).find((one) => one.role === "system")
          expect(system?.role === "system" ? system.sections.map((one) => one.text) : []).toContain("be brief")
        }),
    ))

  it("runs the commands of several plugins, each under its own numbers, and never what a policy refuses", () => {
    const { ran, tool } = shell()
    const asks = (name: string) =>
      plugin(name, {
        onInput: ({ content }) =>
          Effect.succeed({
            content: [text(`${textOf(content)} ${name}={{command:0}}`)],
            commands: [{ command: name, timeoutMs: 1_000, maxBytes: 1_000 }],
          }),
      })
    return run(
      {
        rules: talk,
        tools: [tool],
        plugins: [
          asks("date"),
          asks("reboot"),
          plugin("policy", {
            beforeTool: ({ args }) =>
              Effect.succeed(
                args.command === "reboot" ? { type: "block", rule: "no reboot", reason: "not here" } : undefined,
              ),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("{{command:0}} now")
          expect(asked(yield* conversation.transcript)).toEqual([
            "{{command:0}} now date=<date> reboot=[not run: not here]",
          ])
          expect(ran).toEqual(["date"])
        }),
    )
  })

  it("that fails leaves the input as it was given", () =>
    run({ rules: talk, plugins: [plugin("broken", { onInput: () => Effect.die(new Error("no")) })] }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("go")
        expect(asked(yield* conversation.transcript)).toEqual(["go"])
      }),
    ))
})

describe("onYield", () => {
  it("goes on until the plugin is content, and the answer is the last one", () => {
    let rounds = 0
    return run(
      {
        rules: [
          { match: "better", steps: [{ text: "second answer" }] },
          { match: "", steps: [{ text: "first answer" }] },
        ],
        plugins: [
          plugin("critic", {
            onYield: ({ text: said }) =>
              Effect.sync(() => {
                rounds++
                return said.startsWith("first") ? { continue: "better, please" } : undefined
              }),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          const settled = yield* conversation.ask("go")
          expect(settled.text).toBe("second answer")
          expect(rounds).toBe(2)
          const entries = yield* conversation.transcript
          expect(entries.find((one) => one.kind === "pi.continue")?.data).toEqual({ plugins: ["critic"] })
        }),
    )
  })
})

describe("afterTools and afterRun", () => {
  it("are told what the calls were and how the run ended", () => {
    const told: Array<unknown> = []
    const done = Deferred.unsafeMake<void>(FiberId.none)
    return run(
      {
        rules: callEcho("x"),
        plugins: [
          plugin("log", {
            afterTools: (calls) => Effect.sync(() => void told.push(calls.map((one) => [one.call.name, one.isError]))),
            afterRun: ({ outcome, text: said, tools }) =>
              Effect.zipRight(
                Effect.sync(() => void told.push([outcome, said, tools])),
                Deferred.succeed(done, undefined),
              ),
          }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("go")
          yield* Deferred.await(done)
          expect(told).toEqual([[["echo", false]], ["answered", "done", ["echo"]]])
        }),
    )
  })

  it("afterRun that the node's end cut off runs at its next start, without anybody asking", async () => {
    const path = database()
    const began = Deferred.unsafeMake<void>(FiberId.none)
    await run(
      {
        path,
        rules: talk,
        plugins: [
          plugin("slow", { afterRun: () => Effect.zipRight(Deferred.succeed(began, undefined), Effect.never) }),
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          expect((yield* conversation.ask("go")).text).toBe("answer")
          yield* Deferred.await(began)
        }),
    )
    const again = Deferred.unsafeMake<string | null>(FiberId.none)
    await run(
      {
        path,
        rules: talk,
        plugins: [plugin("slow", { afterRun: ({ text: said }) => Effect.asVoid(Deferred.succeed(again, said)) })],
      },
      () => Effect.map(Deferred.await(again), (said) => expect(said).toBe("answer")),
    )
  })
})

describe("beforeCompact", () => {
  const long = "x".repeat(4_000)
  const filled = (decide: Parameters<typeof plugin>[1]["beforeCompact"]) =>
    run(
      {
        rules: [{ match: "", steps: [{ text: long }] }],
        plugins: [plugin("compactor", { beforeCompact: decide as never })],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          for (const word of ["one", "two", "three"]) yield* conversation.ask(`${word} ${long}`)
          const result = yield* conversation.compact()
          return { result, entries: yield* conversation.transcript }
        }),
    )

  it("gives the summary itself, and no model is asked", async () => {
    const { entries, result } = await filled(() => Effect.succeed({ type: "summary", text: "all was said" }))
    expect(result.status).toBe("completed")
    expect(JSON.stringify(entries.find((one) => one.kind === "pi.compaction")?.data)).toContain("all was said")
  })

  it("declines, and the context stays as it is", async () => {
    const { entries, result } = await filled(() => Effect.succeed({ type: "decline", reason: "not now" }))
    expect(result.status).toBe("declined")
    expect(entries.some((one) => one.kind === "pi.compaction")).toBe(false)
  })
})
