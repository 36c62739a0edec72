/**
 * Harnesses on the command line: the listing, the flags, and the ceiling that no flag lifts. Real processes of the built program.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench

const script = {
  rules: [
    {
      match: "^write",
      steps: [{ tools: [{ name: "write", args: { path: "made.txt", content: "made" } }] }, { text: "done" }],
    },
    { match: ".*", steps: [{ text: "An answer." }] },
  ],
}

const run = (...args: ReadonlyArray<string>) =>
  bench.run(["run", ...args], {
    env: { SUPER_PI_SCRIPT: join(bench.directory, "script.json"), SUPER_PI_DEFAULT_MODEL: "script/test" },
  })

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
  bench.write("script.json", JSON.stringify(script))
}, 300_000)

afterAll(() => bench.remove())

const ids = ["super-pi-code", "super-pi-assistant", "super-pi-librarian", "super-pi-planner"]

describe("harnesses on the command line", () => {
  it("are listed by their present ids, for people and for programs", async () => {
    const { code, stderr, stdout } = await bench.run(["harnesses"])
    expect([code, stderr]).toEqual([0, ""])
    const [head = "", ...rows] = stdout.trimEnd().split("\n")
    expect(head).toMatch(/^HARNESS ID +NAME +DESCRIPTION$/)
    expect(rows.map((row) => row.split(/\s/, 1)[0])).toEqual(ids)
    const listing = JSON.parse((await bench.run(["harnesses", "--json"])).stdout)
    expect(listing.default).toBe("super-pi-code")
    expect(listing.harnesses.map((one: { readonly id: string }) => one.id)).toEqual(ids)
    expect(listing.harnesses[3]).toMatchObject({ modes: ["plan"], workspace: "local" })
    expect(listing.harnesses[3].tools).not.toContain("bash")
    expect(listing.harnesses[1]).toMatchObject({ workspace: "none" })
    expect(listing.harnesses[1].plugins).not.toContain("inline-bash")
    expect(listing.harnesses[2].tools).not.toContain("bash")
    for (const one of listing.harnesses) expect(one.plugins).toContain("permissions")
    for (const at of [0, 2, 3]) expect(listing.harnesses[at].plugins).toContain("protected-paths")
    const input = '{"jsonrpc":"2.0","id":1,"method":"workspace.metadata","params":{}}\n'
    const rpc = await bench.run(["rpc", "--stdio"], { input })
    expect(JSON.parse(rpc.stdout.split("\n", 1)[0] ?? "").result.harnesses).toEqual(listing.harnesses)
  })

  it("begin with the one that the settings name", async () => {
    mkdirSync(join(bench.directory, "other"))
    writeFileSync(join(bench.directory, "other/settings.json"), '{"defaultHarness": "planner"}')
    const env = { SUPER_PI_CONFIG_DIR: join(bench.directory, "other") }
    expect(JSON.parse((await bench.run(["harnesses", "--json"], { env })).stdout).default).toBe("super-pi-planner")
  })

  it("are chosen by --harness, and no --mode lifts the planner out of plan", async () => {
    const made = join(bench.directory, "made.txt")
    expect((await run("write", "--harness", "planner", "--mode", "auto")).code).toBe(0)
    expect(existsSync(made)).toBe(false)
    expect((await run("write", "--harness", "code", "--mode", "auto")).code).toBe(0)
    expect(existsSync(made)).toBe(true)
  })

  it("have --agent as a deprecated alias", async () => {
    const { code, stderr, stdout } = await run("hello", "--agent", "research")
    expect([code, stdout]).toEqual([0, "An answer.\n"])
    expect(stderr).toBe("super-pi: warning: --agent is deprecated; give --harness super-pi-planner\n")
    const both = await run("hello", "--agent", "self", "--harness", "code")
    expect([both.code, both.stdout]).toEqual([2, ""])
  })

  it("are named with the nearest one where there is none of that name", async () => {
    const { code, stderr, stdout } = await run("hello", "--harness", "super-pi-cod")
    expect([code === 0, stdout]).toEqual([false, ""])
    expect(stderr).toContain('the nearest is "super-pi-code"')
  })
})
