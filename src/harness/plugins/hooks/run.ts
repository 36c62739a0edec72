/**
 * Runs one hook command.
 *
 * 1. Its shell and all that it starts are one process group; with the shell's end, at the deadline, or when nobody waits any more, the group
 *    is killed. What leaves it with setsid is on its own.
 * 2. When the node dies, the group is killed: a guard in it notices that its pipe to the node has closed.
 * 3. It gets one JSON object on stdin. Of stdout and stderr the first bytes are kept, the rest is read and thrown away.
 * 4. Its environment is that of commands: the node's secrets are not in it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Readable } from "node:stream"
import { Effect } from "effect"
import type { JsonObject } from "../../../domain/json.ts"
import { reasonOf } from "../../../tools/workspace.ts"

export interface HookRun {
  readonly command: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly input: JsonObject
  readonly timeoutMs: number
  /** Of each of stdout and stderr. */
  readonly maxBytes: number
}

export type HookExit =
  | {
      readonly type: "ended"
      /** Null where a signal ended it. */
      readonly code: number | null
      readonly stdout: string
      readonly stderr: string
      /** Whether something of stdout was thrown away. */
      readonly truncated: boolean
    }
  | { readonly type: "timedOut" }
  | { readonly type: "notStarted"; readonly reason: string }

/** The guard waits for the end of its pipe; the shell with the command takes the place of the launcher. */
const launcher =
  '{ while read -r _ <&3; do :; done; kill -KILL 0; } </dev/null >/dev/null 2>&1 & exec "$0" -c "$1" 3<&-'

/** How long output is waited for that a process outside of the group holds open, in ms. */
const drainMs = 500

class Kept {
  truncated = false
  readonly #chunks: Array<Buffer> = []
  #room: number

  constructor(stream: Readable, maxBytes: number) {
    this.#room = maxBytes
    stream.on("error", () => undefined)
    stream.on("data", (chunk: Buffer) => {
      if (chunk.length > this.#room) this.truncated = true
      if (this.#room > 0) this.#chunks.push(chunk.subarray(0, this.#room))
      this.#room = Math.max(0, this.#room - chunk.length)
    })
  }

  get text(): string {
    return new TextDecoder("utf-8").decode(Buffer.concat(this.#chunks))
  }
}

const killGroup = (child: ChildProcess): void => {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    // Nobody left.
  }
}

/** Never fails: how it went is in the result. Interrupting it kills the group. */
export const runHook = (run: HookRun): Effect.Effect<HookExit> =>
  Effect.async<HookExit>((resume) => {
    let settled = false
    const finish = (exit: HookExit) => {
      if (settled) return
      settled = true
      clearTimeout(deadline)
      resume(Effect.succeed(exit))
    }
    let child: ChildProcess
    try {
      child = spawn("sh", ["-c", launcher, "sh", run.command], {
        cwd: run.cwd,
        env: run.env,
        detached: true,
        stdio: ["pipe", "pipe", "pipe", "pipe"],
      })
    } catch (error) {
      resume(Effect.succeed({ type: "notStarted", reason: reasonOf(error) }))
      return
    }
    const deadline = setTimeout(() => {
      killGroup(child)
      finish({ type: "timedOut" })
    }, run.timeoutMs)
    const { stderr, stdin, stdout } = child
    child.once("error", (error) => finish({ type: "notStarted", reason: reasonOf(error) }))
    child.stdio[3]?.on("error", () => undefined)
    if (stdin === null || stdout === null || stderr === null) return
    const [out, err] = [new Kept(stdout, run.maxBytes), new Kept(stderr, run.maxBytes)]
    stdin.on("error", () => undefined)
    stdin.end(`${JSON.stringify(run.input)}\n`)
    const end = (code: number | null) =>
      finish({ type: "ended", code, stdout: out.text, stderr: err.text, truncated: out.truncated })
    child.once("exit", (code) => {
      // The guard and what the command left behind hold the pipes open.
      killGroup(child)
      const drained = setTimeout(() => {
        stdout.destroy()
        stderr.destroy()
        end(code)
      }, drainMs)
      child.once("close", () => {
        clearTimeout(drained)
        end(code)
      })
    })
    return Effect.sync(() => {
      settled = true
      clearTimeout(deadline)
      killGroup(child)
    })
  })
