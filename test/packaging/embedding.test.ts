/**
 * Embedding through the built package, as an application has it: a program in plain JavaScript, and the conformance suite of `super-pi/testing` run
 * by vitest, as docs/embedding.md shows it. An engine that breaks a rule fails the suite.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"

const root = resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)
let application: string

vi.setConfig({ testTimeout: 300_000, hookTimeout: 120_000 })

beforeAll(async () => {
  await execute(process.execPath, ["scripts/build.mjs", "--if-changed"], { cwd: root })
  // Where test runners of the project do not look.
  const parent = join(root, "node_modules", ".cache")
  mkdirSync(parent, { recursive: true })
  application = mkdtempSync(join(parent, "application-"))
  mkdirSync(join(application, "node_modules"))
  symlinkSync(root, join(application, "node_modules/super-pi"))
  writeFileSync(join(application, "package.json"), '{"type":"module"}')
  writeFileSync(join(application, "vitest.config.js"), 'export default { test: { include: ["*.test.ts"] } }')
})

afterAll(() => rmSync(application, { recursive: true, force: true }))

describe("the built package", () => {
  it("runs conversations in an application, with its own tools and the sandbox", async () => {
    const program = `
      import { Effect, Schema } from "effect"
      import { defineTool, SuperPi } from "super-pi"

      const say = defineTool({
        name: "say",
        description: "Says it",
        parameters: Schema.Struct({ what: Schema.String }),
        effects: [],
        execute: ({ what }) => Effect.succeed({ output: [{ type: "text", text: what.toUpperCase() }] }),
      })
      const tools = [{ name: "say", args: { what: "hello" } }, { name: "grep", args: { pattern: "SuperPi" } }]
      const script = { rules: [{ match: "", steps: [{ tools }, { text: "done" }] }] }
      const superPi = SuperPi.layer({
        storage: { path: "app.db" },
        models: { env: {}, script },
        defaults: { model: "script/test" },
        tools: [say],
      })
      const program = Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open()
        const { text } = yield* conversation.ask("go")
        const entries = yield* conversation.transcript
        const results = entries.flatMap((entry) => entry.model).filter((message) => message.role === "tool")
        for (const result of results) console.log(result.isError, result.content[0].text.split("\\n")[0])
        console.log(text)
      })
      await Effect.runPromise(Effect.provide(program, superPi))
    `
    writeFileSync(join(application, "app.mjs"), program)
    const { stdout } = await execute(process.execPath, ["app.mjs"], { cwd: application })
    const lines = stdout.trimEnd().split("\n")
    expect(lines.slice(0, -1).sort()).toEqual(["false HELLO", expect.stringMatching(/^false app\.mjs:\d+:/)])
    expect(lines.at(-1)).toBe("done")
  })

  const vitest = (file: string) =>
    execute(process.execPath, [join(root, "node_modules/vitest/vitest.mjs"), "run", "--root", application, file], {
      cwd: application,
      env: { ...process.env, NO_COLOR: "1" },
      maxBuffer: 64 * 1024 * 1024,
    }).then(
      ({ stdout }) => ({ ok: true, output: stdout }),
      (error: { readonly stdout?: string; readonly stderr?: string }) => ({
        ok: false,
        output: `${error.stdout}${error.stderr}`,
      }),
    )

  const documented = (): string => {
    const found = /```ts title="engine\.test\.ts"\n(.*?)```/s.exec(
      readFileSync(join(root, "docs/embedding.md"), "utf8"),
    )
    return found?.[1] ?? ""
  }

  it("runs the conformance suite for an engine of the application's own", async () => {
    writeFileSync(join(application, "engine.test.ts"), documented())
    const { ok, output } = await vitest("engine.test.ts")
    expect(ok, output.slice(-2_000)).toBe(true)
    const passed = Number(/Tests\s+(\d+) passed/.exec(output)?.[1] ?? 0)
    expect(passed).toBeGreaterThan(50)
  })

  it("fails it for an engine that forgets", async () => {
    const forgetful = documented().replace(
      "return { open: makeMemoryStore(database) }",
      "return { open: Effect.map(makeMemoryStore(database), (store) => ({ ...store, openTasks: () => Effect.succeed([]) })) }",
    )
    expect(forgetful).not.toBe(documented())
    writeFileSync(join(application, "forgetful.test.ts"), forgetful)
    const { ok, output } = await vitest("forgetful.test.ts")
    expect(ok).toBe(false)
    expect(output).toMatch(/Tests\s+\d+ failed/)
  })
})
