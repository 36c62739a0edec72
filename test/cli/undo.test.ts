/**
 * Undo as a person meets it at the command line: real processes of the built program.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { checkpointLines, undoLines } from "../../src/cli/undo.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

describe("super-pi undo", () => {
  let bench: Bench
  let workspace: string
  const file = (name: string) => readFileSync(join(workspace, name), "utf8")

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    workspace = join(bench.directory, "workspace")
    mkdirSync(workspace)
    writeFileSync(join(workspace, "a"), "one\n")
    const tools = [
      { name: "write", args: { path: "new/b", content: "x" } },
      { name: "bash", args: { command: "echo two > a" } },
    ]
    const script = bench.write(
      "script.json",
      JSON.stringify({ rules: [{ match: "^go$", steps: [{ tools }, { text: "done" }] }] }),
    )
    const said = await bench.run(["run", "-m", "script/x", "--mode", "auto", "--cwd", workspace, "go"], {
      env: { SUPER_PI_SCRIPT: script },
    })
    expect(said).toMatchObject({ code: 0, stdout: "done\n" })
  }, 120_000)
  afterAll(() => bench.remove())

  it("lists what a run changed, takes it back, says how to bring it back, and does", async () => {
    expect(file("a")).toBe("two\n")
    const listed = await bench.run(["undo", "--list", "--cwd", workspace])
    expect(listed.stdout).toContain("run 1: ")
    expect(listed.stdout).toContain("    ~ a\n    + new\n    + new/b\n")
    const undone = await bench.run(["undo", "--cwd", workspace])
    expect(undone).toMatchObject({ code: 0 })
    expect(undone.stdout).toBe("undone: checkpoint 1; 3 paths are as before; bring it back with: super-pi undo 2\n")
    expect(file("a")).toBe("one\n")
    expect(existsSync(join(workspace, "new"))).toBe(false)
    const again = await bench.run(["undo", "--cwd", workspace])
    expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining("no checkpoint is left to undo") })
    expect((await bench.run(["undo", "2", "--cwd", workspace])).code).toBe(0)
    expect([file("a"), file("new/b")]).toEqual(["two\n", "x"])
  }, 120_000)

  it("refuses where a path was changed since, and with --force goes over it", async () => {
    writeFileSync(join(workspace, "a"), "mine\n")
    const refused = await bench.run(["undo", "--cwd", workspace])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain(`${join(workspace, "a")}: changed since`)
    expect([file("a"), file("new/b")]).toEqual(["mine\n", "x"])
    expect((await bench.run(["undo", "--force", "--cwd", workspace])).code).toBe(0)
    expect(file("a")).toBe("one\n")
  }, 120_000)

  it("says what is wrong with its words", async () => {
    const bad = await bench.run(["undo", "x", "--cwd", workspace])
    expect(bad).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected the number of a checkpoint, got "x"'),
    })
    const elsewhere = await bench.run(["undo", "--cwd", bench.directory])
    expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining("no conversation changed anything in") })
    const listed = await bench.run(["undo", "--list", "--json", "--cwd", bench.directory])
    expect(listed).toMatchObject({ code: 0, stdout: "[]\n" })
  }, 120_000)

  it("shows no control characters of names", () => {
    const view = {
      id: 3,
      kind: "turn" as const,
      run: 1,
      at: 0,
      root: "/w",
      tools: ["bash"],
      open: false,
      files: 1,
      undone_by: null,
      undoes: [],
    }
    const paths = [{ path: "/w/\u001b[31mred", change: "created" as const, kept: false }]
    expect(checkpointLines({ ...view, paths }, 1000).join("")).not.toContain("\u001b")
    expect(
      undoLines({ id: 1, undone: [], restored: [], left: [{ path: "/w/\u001b", reason: "x" }] }).join(""),
    ).not.toContain("\u001b")
  })
})
