/**
 * The program in docs/tasks.md runs; run again, it finds its task and sends nothing twice.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { expect, it } from "vitest"
import { snippetProgram } from "../../examples/program.ts"

const page = readFileSync(resolve(import.meta.dirname, "../../../docs/tasks.md"), "utf8")

it("the page's program sends its reminder once, however often it is run", async () => {
  const program = await snippetProgram(/```ts\n(.*?)```/s.exec(page)?.[1] ?? "")
  const cwd = mkdtempSync(join(tmpdir(), "super-pi-reminders-"))
  const run = async () => (await promisify(execFile)(process.execPath, [program.file], { cwd })).stdout
  try {
    const outcome = '{"status":"completed","result":"sent"}\n'
    expect(await run()).toBe(`water the plants (once)\n${outcome}`)
    expect(await run()).toBe(outcome)
  } finally {
    program.remove()
    rmSync(cwd, { recursive: true, force: true })
  }
})
