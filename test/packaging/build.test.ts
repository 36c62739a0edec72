/**
 * `scripts/build.mjs` on a small project of its own: what it writes, when it writes nothing, and what stays when it fails.
 */
import { execFile } from "node:child_process"
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
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
const caches = () => readdirSync(path.join(directory, "dist/chunks")).filter((name) => name.endsWith(".cache"))
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

  it("has what the entries load in one file, whose compiled code it leaves beside it until the file goes", async () => {
    const before = readFileSync(path.join(directory, "src/cli.ts"), "utf8")
    mkdirSync(path.join(directory, "src/cli"))
    for (const file of ["src/cli/load-program.ts", "src/cli/convention.ts"])
      cpSync(path.join(root, file), path.join(directory, file))
    write(
      "src/cli.ts",
      'import { loadProgram } from "./cli/load-program.ts"\nloadProgram().runProgram(process.argv.slice(2))\n',
    )
    const program = (word: string) =>
      write(
        "src/cli/program.ts",
        [
          "// Not ASCII — in a comment.",
          "export const runProgram = async (words: ReadonlyArray<string>): Promise<void> => {",
          '  const { parse } = await import("yaml")',
          `  console.log(parse("${word}: é…"), words.length, import.meta.url.replace(/.*dist/, ""))`,
          "  const end = Date.now() + 500",
          "  while (Date.now() < end) parse('a: 1')",
          "}",
        ].join("\n"),
      )
    program("one")
    await build()
    const [file = ""] = readdirSync(path.join(directory, "dist/chunks")).filter((name) => name.endsWith(".cjs"))
    expect(await node("dist/cli.js", "a", "b")).toBe(`{ one: 'é…' } 2 /chunks/${file}\n`)
    expect(caches()).toEqual([expect.stringContaining(`${file}.`)])
    program("two")
    await build()
    expect(await node("dist/cli.js")).toMatch(/^\{ two: 'é…' \} 0 /)
    expect(caches()).toHaveLength(2)
    write("src/cli.ts", before)
    rmSync(path.join(directory, "src/cli"), { recursive: true })
    const old = new Date(Date.now() - 2 * 3_600_000)
    for (const name of caches()) utimesSync(path.join(directory, "dist/chunks", name), old, old)
    await build()
    expect(caches()).toEqual([])
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
