/**
 * The plugins of a run's flow in conversations: real actors, a store, a scripted model.
 */
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Cause, Effect, Layer, Logger, LogLevel, type Scope, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { todoDocument, usageDocument } from "../../src/domain/builtin-documents.ts"
import { DocumentKind } from "../../src/domain/document.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { Event } from "../../src/domain/event.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { textOf } from "../../src/domain/message.ts"
import { outputOutcome } from "../../src/domain/structured-output.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import type { PluginSpec } from "../../src/harness/plugin.ts"
import { Documents } from "../../src/storage/documents/documents.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { type Commit, Store, type StoreService } from "../../src/storage/store.ts"
import { SuperPi, type SuperPiService } from "../../src/super-pi.ts"

let directory = ""
beforeAll(() => {
  directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-flow-")))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

interface Given {
  readonly plugins: ReadonlyArray<PluginSpec>
  readonly rules: ReadonlyArray<unknown>
  readonly wrapStore?: (store: StoreService) => StoreService
}

const run = <A>(
  { plugins, rules, wrapStore = (store) => store }: Given,
  use: (superPi: SuperPiService) => Effect.Effect<A, unknown, Scope.Scope | Documents | Store>,
): Promise<A> =>
  Effect.runPromise(
    Effect.scoped(Effect.flatMap(SuperPi, use)).pipe(
      Effect.provide(
        SuperPi.layer({
          storage: Layer.effect(Store, Effect.map(makeMemoryStore(memoryDatabase()), wrapStore)),
          models: { env: {}, model: "script/own", script: { rules } as never }, // the script's schema checks it
          defaults: { cwd: directory, mode: "auto" },
          harness: "flow",
          extraHarnesses: [
            defineHarness({ id: "flow", name: "Flow", description: "For tests", prompt: "You are a test.", plugins }),
          ],
        }),
      ),
      // Some of these conversations are meant to die.
      Logger.withMinimumLogLevel(LogLevel.None),
    ),
  )

const calls = (name: string, ...args: ReadonlyArray<JsonObject>) => [
  ...args.map((one) => ({ tools: [{ name, args: one }] })),
  { text: "done" },
]

const results = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> =>
  entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "tool" ? [textOf(one.content)] : [])))

const eventsOf = (events: Iterable<Event>, type: Event["type"]) => [...events].filter((event) => event.type === type)

describe("a todo list in a conversation", () => {
  const rules = [
    {
      match: "^plan",
      steps: calls(
        "todo",
        { action: "add", items: [{ text: "look" }, { text: "change" }] },
        { action: "update", items: [{ id: "1", status: "done" }] },
      ),
    },
    { match: ".*", steps: [{ text: "summary" }] },
  ]

  it("is committed with the result that changed it, told to watchers, and forked as of an entry", () =>
    run({ plugins: ["todo"], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        const events = yield* Stream.runCollect(conversation.run("plan it"))
        expect(eventsOf(events, "plan_updated")).toMatchObject([
          { items: [{ id: "1", text: "look", status: "pending" }, { id: "2" }] },
          { items: [{ id: "1", text: "look", status: "done" }, { id: "2" }] },
        ])
        const documents = yield* Documents
        const store = yield* Store
        const [record] = (yield* store.documents(conversation.id)).filter((one) => one.kind === DocumentKind.todo)
        const [first, second] = (yield* conversation.transcript).filter((entry) => entry.kind === "pi.tool-result")
        expect(record?.seq).toBe(second?.seq)
        const fork = yield* conversation.fork(first === undefined ? {} : { at: first.id })
        const forked = yield* documents.get(todoDocument, { conversation: fork.id })
        expect(forked.items.map((item) => item.status)).toEqual(["pending", "pending"])
      }),
    ))

  it("is carried over a compaction", () =>
    run({ plugins: ["todo"], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("plan it")
        for (let at = 0; at < 6; at++) yield* conversation.ask(`more ${"x".repeat(30_000)}`)
        yield* conversation.compact()
        const summary = (yield* conversation.transcript).find((entry) => entry.kind === "pi.compaction")
        expect(JSON.stringify(summary?.model)).toContain("[done] look")
      }),
    ))

  it.each(["before", "after"] as const)(
    "is changed once when the conversation dies %s the commit of the result",
    (when) => {
      let deaths = 0
      const writesTodo = (commit: Commit) => (commit.documents ?? []).some((one) => one.kind === DocumentKind.todo)
      const wrapStore = (store: StoreService): StoreService => ({
        ...store,
        commit: (commit) => {
          if (deaths > 0 || !writesTodo(commit)) return store.commit(commit)
          deaths++
          const death = Effect.failCause(Cause.die(new Error("the actor dies here")))
          return when === "before" ? death : Effect.zipRight(store.commit(commit), death)
        },
      })
      return run({ plugins: ["todo"], rules, wrapStore }, (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          yield* conversation.ask("plan it")
          expect(deaths).toBe(1)
          const { items } = yield* (yield* Documents).get(todoDocument, { conversation: conversation.id })
          expect(items).toEqual([
            { id: "1", text: "look", status: "done" },
            { id: "2", text: "change", status: "pending" },
          ])
          expect(results(yield* conversation.transcript)).toHaveLength(2)
        }),
      )
    },
  )
})

describe("two models in a run", () => {
  const router: PluginSpec = ["jev-router", { planning_model: "script/strong", implementation_model: "script/fast" }]
  const steps = [
    { tools: [{ name: "ls", args: {} }] },
    { tools: [{ name: "write", args: { path: "a.txt", content: "a" } }] },
    { tools: [{ name: "ls", args: {} }] },
    { text: "done" },
  ]

  const modelsOf = (entries: ReadonlyArray<Entry>) =>
    entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "assistant" ? [one.model] : [])))

  it("are the planning model up to the first edit, and the implementation model from then on; the next run plans anew", () =>
    run({ plugins: [router], rules: [{ match: ".*", steps }] }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("go")
        const once = ["script/strong", "script/strong", "script/fast", "script/fast"]
        expect(modelsOf(yield* conversation.transcript)).toEqual(once)
        yield* conversation.ask("again")
        expect(modelsOf(yield* conversation.transcript)).toEqual([...once, ...once])
      }),
    ))

  it("begin with the implementation model where plan mode was left", () =>
    run({ plugins: [router], rules: [{ match: ".*", steps: [{ text: "said" }] }] }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open({ agent: { mode: "plan" } })
        yield* conversation.ask("plan")
        yield* conversation.configure({ mode: "auto" })
        yield* conversation.ask("do it")
        yield* conversation.ask("and then")
        expect(modelsOf(yield* conversation.transcript)).toEqual(["script/strong", "script/fast", "script/strong"])
      }),
    ))

  it("go on where they were when the conversation dies between two requests", () => {
    let results = 0
    const wrapStore = (store: StoreService): StoreService => ({
      ...store,
      commit: (commit) => {
        const ended = (commit.entries ?? []).some((entry) => entry.kind === "pi.tool-result")
        if (!ended || ++results !== 2) return store.commit(commit)
        return Effect.zipRight(store.commit(commit), Effect.failCause(Cause.die(new Error("the actor dies here"))))
      },
    })
    return run({ plugins: [router], rules: [{ match: ".*", steps }], wrapStore }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("go")
        expect(modelsOf(yield* conversation.transcript)).toEqual([
          ...["script/strong", "script/strong", "script/fast", "script/fast"],
        ])
      }),
    )
  })
})

describe("rules of the tools in the prompt", () => {
  it("are there once, and are not sent again while the tools stay the same", () =>
    run({ plugins: ["prompt-customizer"], rules: [{ match: ".*", steps: [{ text: "said" }] }] }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("one")
        yield* conversation.ask("two")
        const systems = (yield* conversation.transcript).filter((entry) => entry.kind === "pi.system")
        expect(systems).toHaveLength(1)
        expect(JSON.stringify(systems)).toContain("tool_rules")
        yield* conversation.configure({ tools: ["read"] })
        yield* conversation.ask("three")
        const [, changed] = (yield* conversation.transcript).filter((entry) => entry.kind === "pi.system")
        const sections = changed?.model.flatMap((one) => (one.role === "system" ? one.sections : [])) ?? []
        expect(sections.find((section) => section.name === "tool_rules")?.text?.split("\n")).toHaveLength(1)
      }),
    ))
})

describe("an answer as a value", () => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] }
  const rules = [{ match: "^value", steps: calls("structured_output", { n: "x" }, { n: 4 }) }]

  it("comes by the schema of the harness, and by that of the conversation", () =>
    run({ plugins: [["structured-output", { schema }]], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        const settled = yield* conversation.ask("value")
        expect(outputOutcome(yield* conversation.transcript)).toEqual({ type: "value", value: { n: 4 } })
        expect(settled.turns).toBe(2)
        const own = { type: "object", properties: { n: { type: "string" } } }
        const other = yield* superPi.open({ agent: { outputSchema: own } })
        expect((yield* other.ask("value")).turns).toBe(1)
        expect(outputOutcome(yield* other.transcript)).toEqual({ type: "value", value: { n: "x" } })
      }),
    ))

  it("is wanted for as long as the conversation has a schema, and a schema that is none is refused at once", () =>
    run({ plugins: [], rules: [...rules, { match: ".*", steps: [{ text: "words" }] }] }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open({ agent: { outputSchema: schema } })
        yield* conversation.ask("value")
        yield* conversation.configure({ outputSchema: null })
        expect((yield* conversation.ask("plain")).text).toBe("words")
        const fault = yield* Effect.flip(superPi.open({ agent: { outputSchema: { type: "strnig" } } }))
        expect(fault).toMatchObject({ _tag: "InvalidRequest", path: "agent.outputSchema" })
      }),
    ))
})

describe("commands in a prompt", () => {
  const rules = [{ match: ".*", steps: [{ text: "said" }] }]
  const inputs = (entries: ReadonlyArray<Entry>) =>
    entries.flatMap((entry) => entry.model.flatMap((one) => (one.role === "user" ? [textOf(one.content)] : [])))

  it("are run before it is placed, once each, and their outputs stand in their places", () =>
    run({ plugins: ["inline-bash"], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        const log = join(directory, "ran.txt")
        yield* conversation.ask(`a !{echo one | tee -a ${log}} b !{printf '{{command:0}}'} c \\!{no}`)
        const [said = ""] = inputs(yield* conversation.transcript)
        expect(said.replace(/\s+/g, " ")).toBe("a one b {{command:0}} c !{no}")
        expect(readFileSync(log, "utf8")).toBe("one\n")
      }),
    ))

  it("that fail or are not allowed show that in their places, and the prompt is asked all the same", () =>
    run({ plugins: ["permissions", "inline-bash"], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("x !{echo broken >&2; exit 3} y")
        const planning = yield* superPi.open({ agent: { mode: "plan" } })
        const settled = yield* planning.ask("x !{touch made.txt} y")
        expect(settled.text).toBe("said")
        const [failed = ""] = inputs(yield* conversation.transcript)
        expect(failed).toMatch(/^x [\s\S]*broken[\s\S]*3[\s\S]* y$/)
        const [blocked = ""] = inputs(yield* planning.transcript)
        expect(blocked).toMatch(/^x \[not run: .*plan.*\] y$/s)
        expect(existsSync(join(directory, "made.txt"))).toBe(false)
      }),
    ))

  it("have their time and their size", () =>
    run({ plugins: [["inline-bash", { timeout_ms: 1_000, max_output_bytes: 100 }]], rules }, (superPi) =>
      Effect.gen(function* () {
        const conversation = yield* superPi.open()
        yield* conversation.ask("!{seq 1 1000} and !{sleep 60}")
        const [said = ""] = inputs(yield* conversation.transcript)
        const [long = "", late = ""] = said.split(" and ")
        expect(long.length).toBeLessThan(200)
        expect(long).toContain("[cut off after 100 bytes]")
        expect(late).not.toBe("")
      }),
    ))
})

describe("a summary by another model", () => {
  it("that refuses is written by the conversation's own", () =>
    run(
      {
        plugins: [["custom-compaction", { model: "script/fast" }]],
        rules: [
          { match: "Keep every decision", steps: [{ status: 400, message: "no" }] },
          { match: "Summarise", steps: [{ text: "OWN SUMMARY" }] },
          { match: ".*", steps: [{ text: "said" }] },
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          for (let at = 0; at < 4; at++) yield* conversation.ask(`more ${"x".repeat(30_000)}`)
          expect((yield* conversation.compact()).status).toBe("completed")
          const entry = (yield* conversation.transcript).find((one) => one.kind === "pi.compaction")
          expect(JSON.stringify(entry?.model)).toContain("OWN SUMMARY")
        }),
    ))

  it("is asked of the model that the plugin names, with what it is to keep", () =>
    run(
      {
        plugins: [["custom-compaction", { model: "script/fast", instructions: "Keep the licence." }]],
        rules: [
          { match: "Keep the licence", steps: [{ text: "SUMMARY" }] },
          { match: ".*", steps: [{ text: "said" }] },
        ],
      },
      (superPi) =>
        Effect.gen(function* () {
          const conversation = yield* superPi.open()
          for (let at = 0; at < 4; at++) yield* conversation.ask(`more ${"x".repeat(30_000)}`)
          const result = yield* conversation.compact("the API above all")
          expect(result.status).toBe("completed")
          const entry = (yield* conversation.transcript).find((one) => one.kind === "pi.compaction")
          expect(JSON.stringify(entry?.model)).toContain("SUMMARY")
          const usage = yield* (yield* Documents).get(usageDocument, { conversation: conversation.id })
          expect(Object.keys(usage.models).sort()).toEqual(["script/fast", "script/own"])
        }),
    ))
})
