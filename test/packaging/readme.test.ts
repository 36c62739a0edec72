/**
 * The README's commands are run as they stand there, with the echo model; those that serve or draw until they are stopped are asked for their help.
 */
import { execFile } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"

const root = path.resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)
const readme = readFileSync(path.join(root, "README.md"), "utf8")
let home: string

beforeAll(async () => {
  await execute(process.execPath, ["scripts/build.mjs", "--if-changed"], { cwd: root })
  home = mkdtempSync(path.join(tmpdir(), "super-pi-readme-"))
})

afterAll(() => rmSync(home, { recursive: true, force: true }))

/** The words of each `super-pi` line, without the comment behind it. */
const commands = [...readme.matchAll(/^super-pi(?:$|[ ].*$)/gm)].map(([line]) =>
  [...line.replace(/\s#.*$/, "").matchAll(/"([^"]*)"|(\S+)/g)].map((word) => word[1] ?? word[2] ?? "").slice(1),
)

/** Commands that go on until somebody stops them. */
const endless = new Set(["", "acp", "gateway", "mcp", "node", "rpc", "tree"])
/** Commands that ask a running node. */
const asking = new Set(["cluster"])

const run = (args: ReadonlyArray<string>) => {
  const env = {
    ...{ PATH: process.env.PATH ?? "", HOME: home, NO_COLOR: "1", SUPER_PI_DEFAULT_MODEL: "mock/echo" },
    ...{ SUPER_PI_CONFIG_DIR: path.join(home, "config"), SUPER_PI_DATA_DIR: path.join(home, "data") },
  }
  return execute(process.execPath, [path.join(root, "bin/super-pi"), ...args], { cwd: home, env })
}

describe("the README", () => {
  it("names at least the main commands", () => {
    expect(commands.map(([name]) => name)).toEqual(
      expect.arrayContaining(["run", "session", "models", "gateway", "acp", "mcp", "rpc", "tree", "doctor"]),
    )
  })

  it("shows commands that work, in this order", async () => {
    for (const args of commands) {
      const [name = ""] = args
      const { stdout } = await run(endless.has(name) || asking.has(name) ? [...args, "--help"] : args)
      if (name !== "models") expect(stdout, args.join(" ")).not.toBe("")
    }
  })

  it("names scripts that package.json has", () => {
    const { scripts } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))
    for (const [, name = ""] of readme.matchAll(/npm run (\w+)/g)) expect(scripts).toHaveProperty(name)
  })
})
