/**
 * The permission table: commands, modes, policies, and what becomes of them.
 */
import { posix } from "node:path"
import { describe, expect, it } from "vitest"
import { judgeCall } from "../../src/domain/permissions-judge.ts"
import { policyOf } from "../../src/domain/permissions-policy.ts"
import { pathsIn } from "../../src/domain/shell/paths.ts"
import { readShell } from "../../src/domain/shell/read.ts"
import { type Case, cases, policies } from "./shell-cases.ts"

const root = "/repo"
const home = "/home/me"

/** Paths without links: the file system's part is the plugin's, and tested there. */
const outside = (command: string): ReadonlyArray<string> =>
  pathsIn(readShell(command))
    .filter(({ path }) => {
      const absolute = posix.resolve(root, path.replace(/^~(?=\/|$)/, home))
      return absolute !== root && !absolute.startsWith(`${root}/`)
    })
    .map(({ text }) => text)

const decide = ([command, mode, name]: Case) => {
  const policy = policyOf([{ rules: policies[name] }])
  const script = readShell(command)
  const paths = policy.allowNonWorkspaceAccess ? [] : outside(command)
  return judgeCall({ tool: "bash", args: { command }, effects: ["exec"], script, outside: paths }, mode, policy)
}

describe("the permission table", () => {
  it("has at least 150 commands, each of them once", () => {
    expect(cases.length).toBeGreaterThanOrEqual(150)
    expect(new Set(cases.map((one) => one.slice(0, 3).join("\0"))).size).toBe(cases.length)
  })

  it.each(
    cases.map((one) => ({ one, title: `${JSON.stringify(one[0])} in ${one[1]} by ${one[2]}: ${one[3]}, ${one[4]}` })),
  )("$title", ({ one }) => {
    const { type, ...rest } = decide(one)
    expect({ type, ...rest }).toMatchObject({ type: one[3] })
  })
})
