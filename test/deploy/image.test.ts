/**
 * The stages of the Dockerfile without Docker: the files that they copy are enough to build, and what the last one has is enough to run. What
 * systemd and Docker say of the other files, where they are installed.
 */
import { execFile, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { dockerfileOf, type Instruction, textOf } from "./files.ts"

const root = path.resolve(import.meta.dirname, "../..")
const execute = promisify(execFile)
const all = dockerfileOf("deploy/Dockerfile")
const last = Math.max(...all.map(({ stage }) => stage))
let directory: string

beforeAll(() => {
  directory = mkdtempSync(path.join(tmpdir(), "super-pi-image-"))
})
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** `COPY a b ./c`, as sources and target. */
const copyOf = ({ args }: Instruction) => {
  const words = args.split(" ").filter((word) => !word.startsWith("--"))
  const target = words.pop() ?? ""
  return { from: /--from=(\w+)/.exec(args)?.[1] ?? null, sources: words, target }
}

/** Carries out the COPY instructions of a stage that take files of the repository. */
const copy = (stage: number, into: string) => {
  for (const one of all.filter(({ name, stage: of }) => name === "COPY" && of === stage).map(copyOf)) {
    if (one.from !== null) continue
    for (const source of one.sources) {
      const target = path.join(
        into,
        one.target.endsWith("/") ? path.join(one.target, path.basename(source)) : one.target,
      )
      cpSync(path.join(root, source), target, { recursive: true })
    }
  }
}

describe("the image", () => {
  it("lets the build see every file that it copies", () => {
    const kept = textOf(".dockerignore")
      .split("\n")
      .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : []))
    const copied = all
      .filter(({ name }) => name === "COPY")
      .map(copyOf)
      .filter(({ from }) => from === null)
      .flatMap(({ sources }) => sources)
    expect(copied.filter((source) => !kept.includes(source))).toEqual([])
    expect(copied.filter((source) => !existsSync(path.join(root, source)))).toEqual([])
  })

  it("builds from what it copies, and runs from what its last stage has", async () => {
    const build = path.join(directory, "build")
    mkdirSync(build)
    copy(0, build)
    symlinkSync(path.join(root, "node_modules"), path.join(build, "node_modules"))
    const { stdout } = await execute("npm", ["run", "build"], { cwd: build })
    expect(stdout).toContain("built dist")
    const app = path.join(directory, "app")
    mkdirSync(app)
    copy(last, app)
    for (const one of all.filter(({ name, stage }) => name === "COPY" && stage === last).map(copyOf)) {
      if (one.from !== "build") continue
      for (const source of one.sources)
        cpSync(path.join(build, path.relative("/app", source)), path.join(app, one.target), { recursive: true })
    }
    symlinkSync(path.join(root, "node_modules"), path.join(app, "node_modules"))
    rmSync(build, { recursive: true, force: true })
    const env = {
      PATH: process.env.PATH ?? "",
      HOME: directory,
      SUPER_PI_DATA_DIR: path.join(directory, "data"),
      SUPER_PI_CONFIG_DIR: path.join(directory, "config"),
    }
    const started = (args: ReadonlyArray<string>) =>
      execute(process.execPath, [path.join(app, "bin/super-pi"), ...args], { cwd: directory, env })
    expect((await started(["run", "--model", "mock/echo", "good morning"])).stdout).toContain("good morning")
    expect((await started(["node", "--help"])).stdout).toContain("super-pi node")
    expect((await started(["migrate", "--help"])).stdout).toContain("super-pi migrate")
    const entry = await execute(process.execPath, [path.join(app, "dist/node.js"), "--version"], {
      cwd: directory,
      env,
    })
    expect(entry.stdout).toMatch(/^super-pi \d/)
  }, 300_000)
})

describe("what others say of the files", () => {
  const works = (command: string, args: ReadonlyArray<string>) => spawnSync(command, args).status === 0

  it.skipIf(!works("systemd-analyze", ["--version"]))(
    "systemd finds no fault (skipped without systemd-analyze)",
    () => {
      const unit = path.join(directory, "super-pi.service")
      // The program is where this one runs.
      writeFileSync(unit, textOf("deploy/vm/super-pi.service").replace("/usr/bin/node", process.execPath))
      const { stderr, status } = spawnSync("systemd-analyze", ["verify", "--man=no", unit], { encoding: "utf8" })
      const own = stderr.split("\n").filter((line) => line.includes("super-pi.service"))
      expect([own, status]).toEqual([[], 0])
    },
  )

  it.skipIf(!works("docker", ["compose", "version"]))(
    "docker compose finds no fault (skipped without docker compose)",
    () => {
      const deploy = path.join(directory, "deploy")
      cpSync(path.join(root, "deploy"), deploy, { recursive: true })
      cpSync(path.join(deploy, "compose.env.example"), path.join(deploy, "compose.env"))
      const { stderr, status } = spawnSync(
        "docker",
        ["compose", "-f", path.join(deploy, "docker-compose.yml"), "config", "--quiet"],
        {
          encoding: "utf8",
        },
      )
      expect([stderr, status]).toEqual(["", 0])
    },
  )
})
