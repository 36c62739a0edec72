/**
 * Checks of the machine: Node.js, directories, disk, terminal, programs.
 */
import { execFile } from "node:child_process"
import { accessSync, constants, existsSync, statfsSync, statSync } from "node:fs"
import { dirname } from "node:path"
import { Effect } from "effect"
import { traitsOf } from "../protocols/terminal/style.ts"
import { type Check, fail, ok, warn } from "./check.ts"
import { messageOf } from "./exit.ts"

/** The oldest Node.js that the program runs on. */
const oldest = [20, 19] as const

export const checkNode = (version: string): Check => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const enough = major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
  return enough
    ? ok("node", `Node.js ${version}`)
    : fail("node", `Node.js ${version}`, `install Node.js ${oldest.join(".")} or newer`)
}

/** The nearest directory above a path that exists, the path itself included. */
const existing = (path: string): string => {
  let at = path
  while (!existsSync(at) && dirname(at) !== at) at = dirname(at)
  return at
}

export const checkDirectory = (directory: string): Check => {
  const there = existing(directory)
  try {
    if (!statSync(there).isDirectory())
      return fail("data", `${there} is not a directory`, "set SUPER_PI_DATA_DIR to another place")
    accessSync(there, constants.W_OK)
  } catch (error) {
    return fail(
      "data",
      `${there} is not writable (${messageOf(error)})`,
      "set SUPER_PI_DATA_DIR to a directory that you can write to",
    )
  }
  if (there !== directory) return ok("data", `${directory} (made when first needed)`)
  const others = process.platform === "win32" ? 0 : statSync(directory).mode & 0o077
  return others === 0 ? ok("data", directory) : warn("data", `others can enter ${directory}`, `chmod 700 ${directory}`)
}

const mebibyte = 1024 * 1024

/** Below these, in MiB, the disk is a failure, or worth a warning. */
const diskLimits = { fail: 100, warn: 1024 }

export const checkDisk = (directory: string): Check => {
  const there = existing(directory)
  try {
    const { bavail, bsize } = statfsSync(there)
    const free = Math.floor((bavail * bsize) / mebibyte)
    const detail = free >= 10_240 ? `${Math.floor(free / 1024)} GiB free` : `${free} MiB free`
    if (free < diskLimits.fail)
      return fail("disk", `${detail} at ${there}`, "make room, or move the database with SUPER_PI_DATA_DIR")
    if (free < diskLimits.warn) return warn("disk", `${detail} at ${there}`, "make room soon")
    return ok("disk", detail)
  } catch (error) {
    return warn("disk", `the free space at ${there} is unknown (${messageOf(error)})`, "check it by hand")
  }
}

export const checkTerminal = (stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): Check => {
  if (stream.isTTY !== true) return ok("terminal", "stdout is not a terminal: plain text, no colours, no progress")
  const { color, cursor } = traitsOf(stream, env)
  const columns = stream.columns ?? 80
  const detail = `${env.TERM ?? "unknown"}, ${columns} columns, ${color ? "colours" : "no colours"}`
  if (!cursor)
    return warn(
      "terminal",
      detail,
      "set TERM to what the terminal is (for example xterm-256color) for progress and colours",
    )
  return columns < 40 ? warn("terminal", detail, "a wider window shows whole lines") : ok("terminal", detail)
}

/** Milliseconds that a program may take to say its version. */
const versionTimeout = 5000

export const checkProgram = (name: string, use: string): Effect.Effect<Check> =>
  Effect.async((resume) => {
    execFile(name, ["--version"], { timeout: versionTimeout }, (error, stdout) => {
      const line = stdout.split("\n", 1)[0]?.trim() ?? ""
      resume(
        Effect.succeed(
          error === null ? ok(name, line) : warn(name, `${name} does not run`, `install it: ${use} needs it`),
        ),
      )
    })
  })
