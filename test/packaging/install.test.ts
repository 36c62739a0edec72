/**
 * `scripts/install.mjs` in a small project of its own with a stand-in for npm: what is installed when, and what a person reads when it
 * cannot be.
 */
import { spawn } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterEach, describe, expect, it } from "vitest"

const scripts = path.resolve(import.meta.dirname, "../../scripts")

/** Removes `node_modules` first, like npm; then does what `FAKE_NPM` says. */
const fakeNpm = `
const fs = require("fs"), path = require("path")
fs.appendFileSync("npm.log", process.argv.slice(2).join(" ") + "\\n")
fs.rmSync("node_modules", { recursive: true, force: true })
fs.mkdirSync("node_modules/better-sqlite3", { recursive: true })
const how = process.env.FAKE_NPM ?? "ok"
if (how === "offline") { console.error("npm error code EAI_AGAIN"); process.exit(1) }
if (how === "compiler") { console.error("gyp ERR! find Python"); process.exit(1) }
if (how === "headers") { console.error("gyp ERR! stack is related to network connectivity"); process.exit(1) }
if (how === "killed") process.kill(process.pid, "SIGKILL")
const body = how === "no-binary" ? "throw new Error('no binding file')" : "module.exports = class { close() {} }"
fs.writeFileSync("node_modules/better-sqlite3/index.js", body)
fs.copyFileSync("package-lock.json", "node_modules/.package-lock.json")
`

const projects: Array<string> = []

const project = (): string => {
  const directory = mkdtempSync(path.join(tmpdir(), "super-pi-install-"))
  projects.push(directory)
  mkdirSync(path.join(directory, "scripts"))
  cpSync(path.join(scripts, "install.mjs"), path.join(directory, "scripts/install.mjs"))
  writeFileSync(path.join(directory, "npm-cli.js"), fakeNpm)
  lock(directory, "1.0.0")
  return directory
}

const lock = (directory: string, version: string): void => {
  const packages = { "": { name: "x" }, "node_modules/better-sqlite3": { version } }
  writeFileSync(path.join(directory, "package-lock.json"), JSON.stringify({ lockfileVersion: 3, packages }))
}

interface Outcome {
  readonly code: number | null
  readonly stderr: string
}

const run = (directory: string, how = "ok", program = ["scripts/install.mjs"]): Promise<Outcome> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, program, {
      cwd: directory,
      env: { ...process.env, FAKE_NPM: how, npm_execpath: path.join(directory, "npm-cli.js") },
      stdio: ["ignore", "ignore", "pipe"],
    })
    let stderr = ""
    child.stderr.on("data", (chunk) => {
      stderr += chunk
    })
    child.on("error", reject)
    child.on("close", (code) => resolve({ code, stderr }))
  })

const installs = (directory: string): number => {
  const log = path.join(directory, "npm.log")
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n").length : 0
}

afterEach(() => {
  for (const directory of projects.splice(0)) rmSync(directory, { recursive: true, force: true })
})

describe("installing what is missing", () => {
  it("installs once, with the development packages, and not again", async () => {
    const directory = project()
    expect((await run(directory)).code).toBe(0)
    expect((await run(directory)).code).toBe(0)
    expect(installs(directory)).toBe(1)
    expect(readFileSync(path.join(directory, "npm.log"), "utf8")).toContain("ci --include=dev")
  })

  it("installs again when the lock file changed", async () => {
    const directory = project()
    await run(directory)
    lock(directory, "1.0.1")
    expect((await run(directory)).code).toBe(0)
    expect(installs(directory)).toBe(2)
  })

  it("repeats an install that was killed in the middle", async () => {
    const directory = project()
    const killed = await run(directory, "killed")
    expect(killed.code).toBe(1)
    expect(killed.stderr).toContain("run the same command again")
    expect((await run(directory)).code).toBe(0)
    expect(installs(directory)).toBe(2)
  })

  it("takes packages that somebody installed by hand", async () => {
    const directory = project()
    await run(directory)
    rmSync(path.join(directory, "node_modules/.super-pi-install"))
    expect((await run(directory)).code).toBe(0)
    expect(installs(directory)).toBe(1)
  })

  it("lets one of two that start together install, and the other wait", async () => {
    const directory = project()
    const outcomes = await Promise.all([run(directory), run(directory)])
    expect(outcomes.map(({ code }) => code)).toEqual([0, 0])
    expect(installs(directory)).toBe(1)
  })

  it("takes over the lock of an install whose process is gone", async () => {
    const directory = project()
    const gone = spawn(process.execPath, ["-e", ""])
    await new Promise((resolve) => gone.on("close", resolve))
    mkdirSync(path.join(directory, ".install.lock"))
    writeFileSync(path.join(directory, ".install.lock/pid"), String(gone.pid))
    expect((await run(directory)).code).toBe(0)
    expect(existsSync(path.join(directory, ".install.lock"))).toBe(false)
  })
})

describe("an install that cannot be", () => {
  it.each([
    ["offline", "npm did not reach the package registry"],
    ["compiler", "install python3, make and a C++ compiler"],
    ["headers", "node-gyp did not reach nodejs.org"],
    ["no-binary", "better-sqlite3 does not load (Error: no binding file)"],
  ])("says what to do: %s", async (how, line) => {
    const directory = project()
    const { code, stderr } = await run(directory, how)
    expect(code).toBe(1)
    expect(stderr).toContain(line)
    expect(stderr).not.toMatch(/\n\s+at /)
    expect((await run(directory)).code).toBe(0)
  })

  it("names the Node.js version that it needs", async () => {
    const check =
      'import("./scripts/install.mjs").then((m) => m.checkNode("18.19.1")).catch((e) => console.error(e.message))'
    const { stderr } = await run(project(), "ok", ["-e", check])
    expect(stderr).toContain("Node.js: expected 20.19 or newer, got 18.19.1")
  })
})
