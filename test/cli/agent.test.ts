/**
 * What makes the engine an agent, as a person has it with the built-in harness at the command line: subagents, skills, hooks that were
 * approved, a permission that nobody can give. Real processes of the built program.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "./program.ts"

const rules = [
  {
    match: "^delegate$",
    steps: [
      {
        text: "",
        tools: [
          {
            name: "delegate_subagent",
            args: {
              tasks: [
                { role: "scout", task: "count the files" },
                { role: "worker", task: "write a file" },
              ],
            },
          },
        ],
      },
    ],
  },
  {
    match: "^count",
    steps: [
      { text: "", tools: [{ name: "ls", args: {} }] },
      { text: "counted", delayMs: 50 },
    ],
  },
  {
    match: "^write",
    steps: [{ text: "", tools: [{ name: "write", args: { path: "out.txt", content: "x" } }] }, { text: "written" }],
  },
  { match: "^Subagent ", steps: [{ text: "both are back" }] },
  { match: "^run$", steps: [{ text: "", tools: [{ name: "bash", args: { command: "whoami" } }] }, { text: "ran?" }] },
]

describe("super-pi-code at the command line", () => {
  let bench: Bench
  let workspace: string
  const run = (prompt: string, mode: string) =>
    bench.run(["run", "-m", "script/x", "--mode", mode, "--cwd", workspace, prompt], {
      env: { SUPER_PI_SCRIPT: join(bench.directory, "script.json") },
    })

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    workspace = join(bench.directory, "workspace")
    mkdirSync(join(workspace, ".super-pi", "skills", "greet"), { recursive: true })
    bench.write("script.json", JSON.stringify({ rules }))
  }, 120_000)
  afterAll(() => bench.remove())

  it("hands tasks to subagents and goes on when the last of them is back", async () => {
    const said = await run("delegate", "auto")
    expect(said).toMatchObject({ code: 0, stdout: "both are back\n" })
    expect(readFileSync(join(workspace, "out.txt"), "utf8")).toBe("x")
  }, 60_000)

  it("reads skills with front matter", async () => {
    const skill = join(workspace, ".super-pi", "skills", "greet", "SKILL.md")
    writeFileSync(skill, "---\nname: greet\ndescription: How to greet\n---\nBe polite.\n")
    expect((await run("run", "plan")).stderr).toBe("")
    writeFileSync(skill, "---\nname: [greet\n---\nBe polite.\n")
    expect((await run("run", "plan")).stderr).toMatch(/SKILL\.md: front matter: not YAML \(.+\); the skill is skipped/)
  }, 60_000)

  it("runs a project's hooks once they are approved, and not before", async () => {
    const hooks = { PreToolUse: [{ matcher: "write", hooks: [{ command: "touch hooked" }] }] }
    writeFileSync(join(workspace, ".super-pi", "hooks.json"), JSON.stringify({ hooks }))
    expect((await run("write", "auto")).stderr).toContain("was not approved; its hooks do not run")
    expect(existsSync(join(workspace, "hooked"))).toBe(false)
    expect((await bench.run(["trust", "--cwd", workspace])).code).toBe(0)
    expect((await run("write", "auto")).code).toBe(0)
    expect(existsSync(join(workspace, "hooked"))).toBe(true)
  }, 60_000)

  it("blocks what nobody can allow, and says by which rule", async () => {
    const said = await run("run", "accept-edits")
    expect(said).toMatchObject({ code: 0, stdout: "ran?\n" })
    const ids = JSON.parse((await bench.run(["session", "list", "--json"])).stdout)
    const shown = await bench.run(["session", "show", String(ids[0].conversation_id)])
    expect(shown.stdout).toContain("is not in permissions.allow")
  }, 60_000)
})
