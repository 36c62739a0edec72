/**
 * `examples/interactive-chat.ts` as it stands there, with lines from a pipe: in two lives on the same database.
 */
import { spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Example, exampleProgram } from "./program.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-chat-"))
let example: Example

beforeAll(async () => {
  example = await exampleProgram("examples/interactive-chat.ts")
}, 120_000)
afterAll(() => {
  example.remove()
  rmSync(directory, { recursive: true, force: true })
})

const life = (lines: ReadonlyArray<string>): Promise<{ readonly code: number | null; readonly stdout: string }> =>
  new Promise((done, fail) => {
    const child = spawn(process.execPath, [example.file, join(directory, "chat.db")], {
      cwd: directory,
      env: { PATH: process.env.PATH ?? "" },
      stdio: ["pipe", "pipe", "inherit"],
    })
    let stdout = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      stdout += chunk
    })
    child.on("error", fail)
    child.on("close", (code) => done({ code, stdout }))
    child.stdin.end(`${lines.join("\n")}\n`)
  })

describe("examples/interactive-chat.ts", () => {
  it("answers, looks at its context, compacts, and goes on in its next life", async () => {
    const first = await life(["hi", "/status", "/context", "artifacts", "/nonsense", "/compact", "/quit", "never read"])
    expect(first.code).toBe(0)
    expect(first.stdout).toMatch(/^conversation 1 · script\/chat · auto · idle · 0 in, 0 out\n/)
    expect(first.stdout).toContain("Hello! I am scripted, and glad that you are here.\n")
    expect(first.stdout).toContain("auto · idle · 40 in, 12 out\n")
    expect(first.stdout).toMatch(/3 messages from 3 entries; tools: .*read.*bash/)
    expect(first.stdout).toContain("[artifact_list]\nThat is all there is.\n")
    expect(first.stdout).toContain("commands: /status, /context, /compact, /quit\n")
    expect(first.stdout).toMatch(/compaction: \w+\n/)
    expect(first.stdout).toMatch(/bye\n$/)
    const second = await life(["/status", "hi again"])
    expect(second.stdout).toMatch(/^conversation 1 · script\/chat · auto · idle · \d\d+ in/)
    expect(second.stdout).toMatch(/glad that you are here\.\nbye\n$/)
  }, 120_000)
})
