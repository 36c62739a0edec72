/**
 * The package as an application gets it: what is packed, what each entry exports, and that its types and its `effect` are the application's.
 */
import { execFile } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = path.resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)
let application: string

beforeAll(async () => {
  await execute(process.execPath, ["scripts/build.mjs", "--if-changed"], { cwd: root })
  application = mkdtempSync(path.join(tmpdir(), "super-pi-application-"))
  mkdirSync(path.join(application, "node_modules"))
  symlinkSync(root, path.join(application, "node_modules/super-pi"))
  for (const name of ["effect", "@effect", "@types"]) {
    symlinkSync(path.join(root, "node_modules", name), path.join(application, "node_modules", name))
  }
  writeFileSync(path.join(application, "package.json"), '{"type":"module"}')
})

afterAll(() => rmSync(application, { recursive: true, force: true }))

describe("the package", () => {
  it("holds the programs, the library with its types and the documents, and no sources of ours or tests", async () => {
    const npm = process.env.npm_execpath
    const [command, prefix] = npm === undefined ? ["npm", []] : [process.execPath, [npm]]
    const args = [...prefix, "pack", "--dry-run", "--json", "--ignore-scripts"]
    const { stdout } = await execute(command, args, { cwd: root, maxBuffer: 64 * 1024 * 1024 })
    const [{ files }]: [{ files: ReadonlyArray<{ path: string }> }] = JSON.parse(stdout)
    const names = files.map((file) => file.path)
    expect(names).toEqual(
      expect.arrayContaining(["bin/super-pi", "dist/cli.js", "dist/index.js", "dist/types/index.d.ts", "README.md"]),
    )
    expect(names.filter((name) => /^(src|test|bench|scripts|\.ci)\/|\.building-/.test(name))).toEqual([])
  })

  it("prints its version from the program", async () => {
    const { stdout } = await execute(process.execPath, [path.join(root, "bin/super-pi"), "--version"])
    expect(stdout).toMatch(/\d+\.\d+\.\d+/)
  })

  it("shares the application's effect: a service of one is found by the other", async () => {
    const program = `
      import { Context, Effect } from "effect"
      import { Sessions } from "super-pi"
      const service = { tree: Effect.succeed({ name: "mine" }) }
      const program = Effect.flatMap(Sessions, (sessions) => sessions.tree)
      console.log(JSON.stringify(await Effect.runPromise(Effect.provideService(program, Sessions, service))))
      console.log(Context.isTag(Sessions))
    `
    writeFileSync(path.join(application, "run.mjs"), program)
    const { stdout } = await execute(process.execPath, ["run.mjs"], { cwd: application })
    expect(stdout).toBe('{"name":"mine"}\ntrue\n')
  })

  it("gives the application its types under strict settings", async () => {
    const program = `
      import { Effect } from "effect"
      import { type Failure, type SessionState, Sessions } from "super-pi"
      export const open: Effect.Effect<SessionState, Failure, Sessions> = Effect.flatMap(Sessions, (sessions) =>
        sessions.open({ conversationId: null, agent: {}, title: null, requestId: null }),
      )
      // @ts-expect-error a requestId is due
      export const wrong = Effect.flatMap(Sessions, (sessions) => sessions.open({ conversationId: null, agent: {} }))
    `
    writeFileSync(path.join(application, "types.ts"), program)
    const settings = [
      "--noEmit",
      "--strict",
      "--module",
      "nodenext",
      "--target",
      "es2022",
      "--types",
      "node",
      "--skipLibCheck",
    ]
    const compiler = path.join(root, "node_modules/typescript/bin/tsc")
    const { stdout } = await execute(process.execPath, [compiler, ...settings, "types.ts"], { cwd: application })
    expect(stdout).toBe("")
  })
})
