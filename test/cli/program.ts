/**
 * The real command line for tests: `bin/super-pi` over a fresh build, with directories of its own and none of the person's keys.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { pathToFileURL } from "node:url"

const root = resolve(import.meta.dirname, "../..")
export const launcher = join(root, "bin", "super-pi")

/** Builds what the launcher runs, unless it is up to date. */
export const buildProgram = async (): Promise<void> => {
  const { build } = await import(pathToFileURL(join(root, "scripts", "build.mjs")).href)
  await build({ ifChanged: true, requireTypes: false })
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface Running {
  readonly child: ChildProcess
  /** Resolves once stdout matches. Rejects when the process ends before. */
  readonly until: (pattern: RegExp, stream?: "stdout" | "stderr") => Promise<void>
  readonly ended: Promise<Ended>
}

export interface Bench {
  readonly directory: string
  readonly env: Record<string, string>
  readonly start: (
    args: ReadonlyArray<string>,
    options?: { readonly input?: string; readonly env?: Record<string, string> },
  ) => Running
  readonly run: (
    args: ReadonlyArray<string>,
    options?: { readonly input?: string; readonly env?: Record<string, string> },
  ) => Promise<Ended>
  readonly write: (name: string, text: string) => string
  readonly remove: () => void
}

const running = (child: ChildProcess): Running => {
  const text = { stdout: "", stderr: "" }
  const listeners = new Set<() => void>()
  for (const stream of ["stdout", "stderr"] as const) {
    child[stream]?.setEncoding("utf8").on("data", (chunk: string) => {
      text[stream] += chunk
      for (const listener of listeners) listener()
    })
  }
  const ended = new Promise<Ended>((done, fail) => {
    child.on("error", fail)
    child.on("close", (code) => done({ code, ...text }))
  })
  return {
    child,
    ended,
    until: (pattern, stream = "stdout") =>
      new Promise((done, fail) => {
        const look = () => {
          if (!pattern.test(text[stream])) return
          listeners.delete(look)
          done()
        }
        listeners.add(look)
        ended.then(() => fail(new Error(`ended before ${pattern}: ${JSON.stringify(text)}`)), fail)
        look()
      }),
  }
}

/** A directory with data, settings and an environment for one test file. */
export const makeBench = (): Bench => {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-cli-")))
  const env: Record<string, string> = {
    PATH: process.env.PATH ?? "",
    HOME: directory,
    SUPER_PI_DATA_DIR: join(directory, "data"),
    SUPER_PI_CONFIG_DIR: join(directory, "config"),
  }
  const children = new Set<ChildProcess>()
  const start: Bench["start"] = (args, options = {}) => {
    const child = spawn(process.execPath, [launcher, ...args], {
      cwd: directory,
      env: { ...env, ...options.env },
      stdio: ["pipe", "pipe", "pipe"],
    })
    children.add(child)
    child.on("close", () => children.delete(child))
    child.stdin?.on("error", () => {})
    child.stdin?.end(options.input ?? "")
    return running(child)
  }
  return {
    directory,
    env,
    start,
    run: (args, options) => start(args, options).ended,
    write: (name, text) => {
      const file = join(directory, name)
      writeFileSync(file, text)
      return file
    },
    remove: () => {
      for (const child of children) child.kill("SIGKILL")
      rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
}
