/**
 * `examples/embed.ts` as it stands there, as a process of its own: it prints what it promises, also when it is run again on the same database.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Example, exampleProgram } from "./program.ts"

const execute = promisify(execFile)
const directory = mkdtempSync(join(tmpdir(), "super-pi-embed-"))
const database = join(directory, "shop.db")
let example: Example

beforeAll(async () => {
  example = await exampleProgram("examples/embed.ts")
})
afterAll(() => {
  example.remove()
  rmSync(directory, { recursive: true, force: true })
})

describe("examples/embed.ts", () => {
  it("reserves once, is stopped in the middle and goes on in its second life", async () => {
    const { stderr, stdout } = await execute(process.execPath, [example.file, database])
    expect(stderr).toBe("")
    expect(stdout.split("\n")).toEqual([
      "first life",
      '  calls reserve {"goods":"chair","count":4}',
      "  asking the warehouse",
      "  the application stops",
      "second life",
      "  the answer to the same input: Four chairs are reserved.",
      '  the result of the one call: [{"type":"text","text":"booking 1: 4 × chair"}]',
      "  says: You are welcome.",
      "",
    ])
  })
})
