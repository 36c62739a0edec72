/**
 * `scripts/build.mjs` on a small project of its own: what it writes, when it writes nothing, and what stays when it fails.
 */
import { execFile } from "node:child_process"
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = path.resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)
let directory: string

const write = (file: string, text: string): void => writeFileSync(path.join(directory, file), text)
const node = async (...args: ReadonlyArray<string>) =>
  (await execute(process.execPath, args, { cwd: directory })).stdout
const build = () => node("scripts/build.mjs", "--if-changed")
const chunks = () => readdirSync(path.join(directory, "dist/chunks")).filter((name) => name.endsWith(".js"))

beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "super-pi-build-"))
  for (const folder of ["scripts", "src"]) mkdirSync(path.join(directory, folder))
  for (const file of ["scripts/build.mjs", "scripts/cjs-names.mjs", "tsconfig.json", "tsconfig.build.json"]) {
    cpSync(path.join(root, file), path.join(directory, file))
  }
  symlinkSync(path.join(root, "node_modules"), path.join(directory, "node_modules"))
  write("package.json", '{"name":"super-pi","version":"9.8.7","type":"module"}')
  write("package-lock.json", "{}")
  write("src/answer.ts", "export const answer: number = 41\n")
  write(
    "src/index.ts",
    'import { Effect } from "effect"\nexport { answer } from "./answer.ts"\nexport const one = Effect.succeed(1)\n',
  )
  write(
    "src/cli.ts",
    'import ignore from "ignore"\nconst { answer } = await import("./answer.ts")\nconsole.log(answer, typeof ignore, process.env.SUPER_PI_VERSION)\n',
  )
})

afterAll(() => rmSync(directory, { recursive: true, force: true }))

describe("the build", () => {
  it("bundles programs with their packages and leaves the packages of library entries outside", async () => {
    expect(await build()).toContain("built dist")
    expect(await node("dist/cli.js")).toBe("41 function 9.8.7\n")
    expect(readFileSync(path.join(directory, "dist/cli.js"), "utf8")).not.toMatch(/from "ignore"/)
    expect(readFileSync(path.join(directory, "dist/index.js"), "utf8")).toMatch(/from "effect"/)
    expect(readFileSync(path.join(directory, "dist/types/index.d.ts"), "utf8")).toContain("Effect<number")
  })

  it("gives packages that are imported at run time the names that they have without a bundle", async () => {
    write(
      "src/node.ts",
      [
        'const { parse } = await import("yaml")',
        'const { Ajv, default: whole } = await import("ajv")',
        'const { execa } = await import("execa")',
        'console.log(parse("a: 1"), typeof Ajv, Ajv === whole.Ajv, typeof execa)',
      ].join("\n"),
    )
    await build()
    expect(await node("dist/node.js")).toBe("{ a: 1 } function true function\n")
    rmSync(path.join(directory, "src/node.ts"))
    await build()
  })

  it("does nothing while the sources are the same", async () => {
    expect(await build()).toContain("up to date")
  })

  it("builds changed sources, and a program that started from the former build still finds its chunks", async () => {
    const before = chunks()
    write("src/answer.ts", "export const answer: number = 42\n")
    await build()
    expect(await node("dist/cli.js")).toContain("42")
    expect(chunks()).toEqual(expect.arrayContaining(before))
  })

  it("leaves the last good build in place when the sources are broken", async () => {
    write("src/answer.ts", "export const answer: = 43\n")
    await expect(build()).rejects.toMatchObject({ code: 1 })
    expect(await node("dist/cli.js")).toContain("42")
    write("src/answer.ts", 'export const answer: number = "43"\n')
    await expect(build()).rejects.toMatchObject({ stderr: expect.stringContaining("declarations failed") })
    expect(await node("dist/cli.js")).toContain("42")
    expect(readdirSync(path.join(directory, "dist")).filter((name) => name.startsWith("."))).toEqual([])
  })
})
