/**
 * Running git without leaving a trace: no index refresh, no hooks, no file-system monitor, no prompts, none of the node's `GIT_*` variables.
 */
import { spawn } from "node:child_process"
import { commandEnvironment } from "../../../tools/environment.ts"

export interface GitResult {
  readonly code: number
  readonly stdout: Buffer
  readonly stderr: string
}

const quiet = ["-c", "core.fsmonitor=false", "-c", "core.checkStat=default", "-c", "core.ignoreStat=false"]

/** Reads with git in a directory; `input` goes to its stdin. A git that is not there is code 127. */
export const git = (cwd: string, args: ReadonlyArray<string>, input: string | Buffer = ""): Promise<GitResult> =>
  new Promise((resolve) => {
    const env = { ...commandEnvironment(process.env), GIT_OPTIONAL_LOCKS: "0", LC_ALL: "C" }
    const child = spawn("git", [...quiet, ...args], { cwd, env, stdio: ["pipe", "pipe", "pipe"] })
    const out: Array<Buffer> = []
    const err: Array<Buffer> = []
    child.stdout.on("data", (chunk: Buffer) => out.push(chunk))
    child.stderr.on("data", (chunk: Buffer) => err.push(chunk))
    child.stdin.on("error", () => undefined)
    child.once("error", (cause) => resolve({ code: 127, stdout: Buffer.alloc(0), stderr: cause.message }))
    child.once("close", (code) =>
      resolve({ code: code ?? 1, stdout: Buffer.concat(out), stderr: Buffer.concat(err).toString("utf8").trim() }),
    )
    child.stdin.end(input)
  })

/** The parts of `-z` output. */
export const zero = (bytes: Buffer): ReadonlyArray<string> => {
  const parts = bytes.toString("utf8").split("\0")
  if (parts.at(-1) === "") parts.pop()
  return parts
}
