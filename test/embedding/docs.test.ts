/**
 * The snippets of docs/embedding.md, docs/documents.md, docs/harnesses.md, docs/gateway.md, docs/mcp-server.md and of the README are whole programs: they compile, run, and print what their comments say.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { snippetProgram } from "../examples/program.ts"

const root = resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)

const snippetsOf = (file: string) =>
  [...readFileSync(join(root, file), "utf8").matchAll(/```ts\n(.*?)```/gs)].map(([, code = ""], index) => ({
    name: `${file} ${index + 1}`,
    code,
  }))
const snippets = [
  ...snippetsOf("README.md"),
  ...snippetsOf("docs/embedding.md"),
  ...snippetsOf("docs/documents.md"),
  ...snippetsOf("docs/harnesses.md"),
  ...snippetsOf("docs/gateway.md"),
  ...snippetsOf("docs/mcp-server.md"),
]

let directory: string
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "super-pi-snippets-"))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe("the snippets of embedding", () => {
  it("are there, in both places", () => {
    expect(snippets.map(({ name }) => name.split(" ")[0])).toEqual(
      expect.arrayContaining(["README.md", "docs/embedding.md"]),
    )
  })

  it("compile under strict settings", async () => {
    const folder = join(root, "node_modules", ".cache", `snippets-${process.pid}`)
    mkdirSync(folder, { recursive: true })
    try {
      for (const [at, { code }] of snippets.entries()) writeFileSync(join(folder, `${at}.ts`), code)
      writeFileSync(join(folder, "package.json"), '{"type":"module"}')
      const config = { extends: join(root, "tsconfig.json"), include: ["*.ts"], exclude: [] }
      writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
      const compiler = join(root, "node_modules/typescript/bin/tsc")
      const { stdout } = await execute(process.execPath, [compiler, "-p", folder]).catch((error: unknown) => {
        const output = typeof error === "object" && error !== null && "stdout" in error ? String(error.stdout) : ""
        return { stdout: output === "" ? String(error) : output }
      })
      const mine = stdout.split("\n").filter((line) => /(^|\/)\d+\.ts\(/.test(line))
      expect(mine).toEqual([])
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it.each(snippets)("print what they say: $name", async ({ code }) => {
    const program = await snippetProgram(code)
    try {
      const { stderr, stdout } = await execute(process.execPath, [program.file], { cwd: directory })
      expect(stderr).toBe("")
      const promised = [...code.matchAll(/console\.log\(.*\) \/\/ (.*)$/gm)].map(([, line]) => line)
      expect(promised.length).toBeGreaterThan(0)
      expect(stdout.trimEnd().split("\n")).toEqual(promised)
    } finally {
      program.remove()
    }
  })
})
