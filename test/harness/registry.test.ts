/**
 * Declarations, names and choices: what is wrong is said all at once and with the nearest valid name, and nothing lifts a ceiling.
 */
import { Effect, Either, Schema } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { Effort, ExecutionMode } from "../../src/domain/document.ts"
import { text } from "../../src/domain/message.ts"
import { builtinHarnesses } from "../../src/harness/builtin/index.ts"
import { defineHarness } from "../../src/harness/declare.ts"
import { type AnyPlugin, anyPlugin, definePlugin, InvalidDeclaration } from "../../src/harness/define.ts"
import type { Harness } from "../../src/harness/harness.ts"
import { looser } from "../../src/harness/modes.ts"
import { builtinPlugins } from "../../src/harness/plugins/index.ts"
import { makeHarnesses } from "../../src/harness/registry.ts"
import { effectiveAgent } from "../../src/harness/resolve.ts"
import { defineTool } from "../../src/tools/define.ts"
import { makeTools } from "../../src/tools/tools.ts"

const places = { configDir: "/c", dataDir: "/d", discoveryRoots: [], env: {} }
const tool = (name: string) =>
  defineTool({
    name,
    description: name,
    parameters: Schema.Struct({}),
    effects: ["read"],
    execute: () => Effect.succeed({ output: [text("")] }),
  })

const limit = anyPlugin(
  definePlugin({
    name: "limit",
    aliases: ["limiter"],
    description: "For tests",
    options: Schema.Struct({ timeoutMs: Schema.optionalWith(Schema.Number, { default: () => 5 }) }),
    tools: () => [tool("limited")],
  }),
)

const harness = (more: Partial<Harness> = {}): Harness => ({
  id: "own",
  name: "Own",
  description: "For tests",
  prompt: "You are a test.",
  plugins: ["limit"],
  ...more,
})

const known = (extraHarnesses: ReadonlyArray<Harness> = [], extraPlugins: ReadonlyArray<AnyPlugin> = [limit]) =>
  makeHarnesses({ extraHarnesses, extraPlugins, places, tools: makeTools([tool("read"), tool("write"), tool("bash")]) })

const faults = (make: () => unknown): ReadonlyArray<string> => {
  try {
    make()
  } catch (error) {
    if (!(error instanceof InvalidDeclaration)) throw error
    return error.faults.map(({ actual, expected, path }) => `${path}: expected ${expected}, got ${actual}`)
  }
  throw new Error("nothing was wrong with it")
}

describe("a declaration", () => {
  it("that is wrong says everything that is wrong with it", () => {
    const wrong = harness({
      id: "Not Kebab",
      prompt: " ",
      mode: "auto",
      maxMode: "plan",
      plugins: [["limit", { timeoutMS: 3 }], "limitt", ["limit", { timeoutMs: "x" }]],
    })
    expect(faults(() => defineHarness(wrong, { plugins: [limit] }))).toEqual([
      'id: expected a name in kebab-case, got "Not Kebab"',
      'prompt: expected a text, got " "',
      'mode: expected a mode up to maxMode "plan", got "auto"',
      'plugins[0][1].timeoutMS: expected the option "timeoutMs", got an unknown option with 3',
      'plugins[1]: expected the name of a plugin (the nearest is "limit"), got "limitt"',
      'plugins[2][1].timeoutMs: expected number, got "x"',
    ])
  })

  it("of a shape that no type allows is refused by name", () => {
    // What a program without types may give.
    const wrong = { ...harness(), mode: "fast", modle: "x" } as unknown as Harness
    const said = faults(() => defineHarness(wrong, { plugins: [limit] }))
    expect(said).toContain('modle: expected the option "model", got an unknown option')
    expect(said.some((one) => one.startsWith("mode: expected") && one.endsWith('got "fast"'))).toBe(true)
  })

  it("of a plugin is checked as well", () => {
    const hooks = { beforeTol: () => Effect.void } as never // a hook that there is not
    expect(faults(() => definePlugin({ name: "Bad Name", description: "", deadlineMs: 0, hooks }))).toEqual([
      'name: expected a name in kebab-case, got "Bad Name"',
      'description: expected a text, got ""',
      "deadlineMs: expected milliseconds above 0, got 0",
      'hooks.beforeTol: expected the hook "beforeTool", got an unknown hook',
    ])
  })
})

describe("the registry", () => {
  it("lists the four and those of the application, and finds older ids and short names", () => {
    const harnesses = known([harness()])
    expect(harnesses.list.map(({ id }) => id)).toEqual([...builtinHarnesses.map(({ id }) => id), "own"])
    const idOf = (name: string) => Either.getOrThrow(harnesses.find(name)).id
    expect(["super-pi-workspace", "super-pi-auto", "code"].map(idOf)).toEqual(Array(3).fill("super-pi-code"))
    expect(["super-pi-agent", "super-pi-fast", "super-pi-interactive"].map(idOf)).toEqual(
      Array(3).fill("super-pi-assistant"),
    )
    expect(idOf("planner")).toBe("super-pi-planner")
  })

  it("names the nearest harness for one that there is not", () => {
    const found = known().find("super-pi-planer")
    expect(Either.isLeft(found) ? found.left.message : "").toContain('the nearest is "super-pi-planner"')
  })

  it("refuses an id or a name that is taken, and tools of one name", () => {
    expect(faults(() => known([harness({ id: "super-pi-code" })]))[0]).toContain("id: expected an id that no other")
    expect(faults(() => known([], [limit, { ...limit, name: "limiter", aliases: [] }]))[0]).toContain(
      'name: expected a name that no other plugin has ("limit" has it), got "limiter"',
    )
    const twin = { ...limit, name: "twin", aliases: [] }
    expect(faults(() => known([harness({ plugins: ["limit", "twin"] })], [limit, twin]))[0]).toContain(
      'the tool "limited" of the plugin "twin"',
    )
  })

  it("lets a conversation add plugins, but not change the options of those that its harness carries", () => {
    const other = { ...limit, name: "other", aliases: [], tools: () => [] }
    const harnesses = known([harness()], [limit, other])
    const made = Either.getOrThrow(harnesses.pipeline({ harness: "own", plugins: ["other", "limiter"] }))
    expect(made?.plugins.map(({ plugin }) => plugin.name)).toEqual(["limit", "other"])
    expect(made?.plugins[0]?.options).toEqual({ timeoutMs: 5 })
    const changed = harnesses.pipeline({ harness: "own", plugins: [["limit", { timeoutMs: 9 }]] })
    expect(Either.isLeft(changed) ? changed.left.path : "").toBe("agent.plugins[0]")
  })

  it("has no pipeline for a bare conversation", () => {
    expect(Either.getOrThrow(known().pipeline({}))).toBeNull()
  })

  it("says what each harness can do", () => {
    const planner = known().capabilities.find(({ id }) => id === "super-pi-planner")
    expect(planner?.modes).toEqual(["plan"])
    expect(planner?.tools).not.toContain("write")
    expect(known().capabilities.find(({ id }) => id === "super-pi-assistant")?.workspace).toBe("none")
  })
})

describe("the built-in harnesses", () => {
  it("are declared without a fault, and carry the policy where it is registered", () => {
    for (const one of builtinHarnesses) expect(defineHarness(one)).toBe(one)
    if (!builtinPlugins.some(({ name }) => name === "permissions")) return
    for (const one of builtinHarnesses) expect(one.plugins).toContain("permissions")
  })
})

describe("a choice", () => {
  const mode = fc.option(fc.constantFrom(...ExecutionMode.literals), { nil: undefined })
  const given = <K extends string, A>(key: K, value: A | undefined) => (value === undefined ? {} : { [key]: value })

  it("comes from the caller, else the harness, else the settings, and never goes above the ceiling", () => {
    fc.assert(
      fc.property(mode, mode, mode, fc.constantFrom(...ExecutionMode.literals), (caller, own, ceiling, settings) => {
        const of = harness({ ...given("mode", own), ...given("maxMode", ceiling) })
        const effective = effectiveAgent({ ...given("mode", caller) }, of, settings, [])
        const wanted = caller ?? own ?? settings
        if (ceiling !== undefined) expect(looser(effective.mode, ceiling)).toBe(false)
        if (ceiling === undefined || !looser(wanted, ceiling)) expect(effective.mode).toBe(wanted)
      }),
      { numRuns: 1_000 },
    )
  })

  it("of tools is never more than the harness offers", () => {
    const tools = ["read", "write", "bash", "todo"]
    fc.assert(
      fc.property(fc.option(fc.subarray(tools), { nil: undefined }), fc.subarray(tools), (caller, only) => {
        const effective = effectiveAgent({ ...given("tools", caller) }, harness({ tools: { only } }), "auto", tools)
        for (const name of effective.tools ?? tools) expect(only).toContain(name)
        if (caller !== undefined) for (const name of effective.tools ?? []) expect(caller).toContain(name)
      }),
      { numRuns: 500 },
    )
  })

  it("of a model and an effort is the caller's before the harness's", () => {
    const of = harness({ model: "a/b", effort: "low" })
    expect(effectiveAgent({}, of, "auto", [])).toMatchObject({ model: "a/b", effort: "low" })
    for (const effort of Effort.literals) {
      expect(effectiveAgent({ model: "c/d", effort }, of, "auto", [])).toMatchObject({ model: "c/d", effort })
    }
  })
})
