/**
 * `super-pi trust` as a person meets it: real processes of the built program.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { readTrust, trustFile } from "../../src/harness/plugins/hooks/trust.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

describe("super-pi trust", () => {
  let bench: Bench
  const hooks = {
    hooks: { PreToolUse: [{ matcher: "bash", hooks: [{ command: "check\u001b[31m" }, { command: "" }] }] },
  }

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    mkdirSync(join(bench.directory, "repo", ".git"), { recursive: true })
    mkdirSync(join(bench.directory, "repo", "inner"))
    mkdirSync(join(bench.directory, "repo", ".agents"))
  })
  afterAll(() => bench.remove())

  const trusted = () => [...readTrust(readFileSync(trustFile(join(bench.directory, "data")), "utf8")).keys()]
  const trust = (...more: ReadonlyArray<string>) => bench.run(["trust", "--cwd", "repo/inner", ...more])

  it("says so where a project has no hooks", async () => {
    const { code, stdout } = await trust()
    expect(code).toBe(0)
    expect(stdout).toMatch(/has no hooks file \(\.agents\/hooks\.json or \.super-pi\/hooks\.json\)\n$/)
  })

  it("shows what it approves without control characters, approves it, and takes it back", async () => {
    const path = join(bench.directory, "repo", ".agents", "hooks.json")
    writeFileSync(path, JSON.stringify(hooks))
    const first = await trust()
    expect(first.stdout).toMatch(
      /hooks\.json \(sha256:[0-9a-f]{12}…\): approved\n {2}PreToolUse bash: check\n {2}skipped: PreToolUse\[0\]/,
    )
    expect(trusted()).toEqual([path])
    expect((await trust()).stdout).toContain("was approved already")
    const listed = JSON.parse((await trust("--json")).stdout)
    expect(listed).toMatchObject([{ path, trusted: true, hooks: [{ event: "PreToolUse" }] }])
    expect((await trust("--revoke")).stdout).toContain("not approved any more")
    expect(trusted()).toEqual([])
  })
})
