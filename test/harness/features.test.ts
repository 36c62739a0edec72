/**
 * docs/features.md: every row has a state and what shows it, and what is named is there.
 */
import { existsSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { describe, expect, it } from "vitest"
import { builtinPlugins } from "../../src/harness/plugins/index.ts"

const root = resolve(import.meta.dirname, "../..")
const page = readFileSync(resolve(root, "docs/features.md"), "utf8")

const rows = page
  .split("\n")
  .filter((line) => line.startsWith("| ") && !line.startsWith("| Statement "))
  .map((line) => {
    const [, statement = "", state = "", shown = ""] = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
    return { statement, state, tests: [...shown.matchAll(/`(test\/[^`]+)`/g)].map(([, file = ""]) => file) }
  })

describe("the table of features", () => {
  it("names tests that there are", () => {
    const missing = rows.flatMap((row) => row.tests).filter((file) => !existsSync(resolve(root, file)))
    expect([...new Set(missing)]).toEqual([])
  })

  it("shows what works by a test, and what is missing by none", () => {
    expect(rows.length).toBeGreaterThan(80)
    const untold = rows.filter(({ state, tests }) =>
      state === "missing" ? tests.length > 0 : !["works", "differs"].includes(state) || tests.length === 0,
    )
    expect(untold).toEqual([])
  })

  it("has a row for each plugin", () => {
    const untold = builtinPlugins.filter(({ name }) => !rows.some((row) => row.statement.startsWith(`\`${name}\``)))
    expect(untold.map(({ name }) => name)).toEqual([])
  })
})
