/**
 * One shell command as a process group of its own.
 *
 * 1. The shell and all that it starts are one process group (what leaves it with setsid is on its own).
 * 2. stdout and stderr are one pipe, so they come in the order in which they were written. stdin is empty.
 * 3. The command ends when its shell ends: what still runs in the background keeps running and does not hold the call.
 * 4. {@link ProcessGroup.stop} ends the whole group: TERM, after a grace KILL.
 * 5. When the node dies, the group is ended: a guard process in it notices that its pipe to the node has closed.
 */
import { randomBytes } from "node:crypto"
import type { Readable, Writable } from "node:stream"
import { Intake } from "./intake.ts"
import { hasLivingMembers } from "./living-members.ts"

export interface ProcessOptions {
  readonly command: string
  /** Absolute. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly shell: "bash" | "sh"
  /** What runs the shell that runs the command, with its arguments; empty for nothing. */
  readonly prefix?: ReadonlyArray<string>
  /** Takes output as it comes; while the promise that it may return is pending, no more is read. */
  readonly onOutput: (chunk: Buffer) => Promise<void> | undefined
}

/** How a command ended; one of the two is null. */
export interface ProcessExit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

/**
 * Output that is still on its way when the shell ends is read up to a mark. When the mark does not come (its writer was killed) reading
 * ends after this much quiet, or after this much time, in milliseconds.
 */
const quietMs = 2000
const drainMs = 10_000

/**
 * The guard waits for the node: for a line, which it writes to the output as the mark and ends; or for the end of the pipe, which is the
 * death of the node (rule 5).
 */
const guard =
  '{ while read -r mark <&3; do printf %s "$mark"; exit 0; done; trap "" TERM; kill -TERM 0; sleep 2; kill -KILL 0; } </dev/null 2>/dev/null'

/**
 * The arguments are the command line: the prefix, then the shell with the command. With bash the output goes through `cat` to a real pipe: Node's pipes are sockets, which
 * `/dev/stderr` cannot open. The second `cat` keeps background processes from dying of a closed pipe. 63 is the descriptor that bash
 * itself holds of that pipe; inherited, it would keep the pipe open for a background process that has sent its output elsewhere.
 */
const launchers = {
  bash: `exec > >(exec 3<&-; trap "" TERM; cat; exec cat >/dev/null) 2>&1; ${guard} 63>&- & exec "$@" 3<&- 63>&-`,
  sh: `exec 2>&1; ${guard} & exec "$@" 3<&-`,
}

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

export class ProcessGroup {
  readonly pid: number
  /** Settles when the shell has ended and its output has been taken. */
  readonly exit: Promise<ProcessExit>
  readonly #intake: Intake
  readonly #guard: Writable | undefined
  #stopping: Promise<void> | undefined

  private constructor(pid: number, intake: Intake, guardPipe: Writable | undefined, ended: Promise<ProcessExit>) {
    this.pid = pid
    this.#intake = intake
    this.#guard = guardPipe
    this.exit = ended.then(async (exit) => {
      // What the shell wrote is in the pipe before the mark.
      const mark = randomBytes(16).toString("hex")
      intake.endAt(Buffer.from(mark))
      this.#guard?.end(`${mark}\n`)
      await intake.finished(quietMs, drainMs)
      return exit
    })
    // Whoever stops the group may not ask how it ended.
    this.exit.catch(() => undefined)
  }

  /** Starts a command; fails with the system's error when there is no such shell or directory. */
  static async start(options: ProcessOptions): Promise<ProcessGroup> {
    // Loaded with the first command: it would cost every start of the program.
    const { execa } = await import("execa")
    const { command, prefix = [], shell } = options
    const child = execa(shell, ["-c", launchers[shell], shell, ...prefix, shell, "-c", command], {
      cwd: options.cwd,
      env: options.env,
      extendEnv: false,
      detached: true,
      cleanup: false,
      buffer: false,
      reject: false,
      stdio: ["ignore", "pipe", "ignore", "pipe"],
    })
    // Its own promise waits for every pipe, and so for background processes; the events below do not.
    child.catch(() => undefined)
    return new Promise((resolve, reject) => {
      const output = child.stdout
      const guardPipe = child.stdio[3]
      const ended = new Promise<ProcessExit>((settle) => {
        child.once("exit", (exitCode, signal) => settle({ exitCode, signal }))
      })
      child.once("error", reject)
      child.once("spawn", () => {
        if (child.pid === undefined || output === null) return reject(new Error("the shell did not start"))
        const writable = guardPipe !== null && guardPipe !== undefined && isWritable(guardPipe) ? guardPipe : undefined
        writable?.on("error", () => undefined)
        resolve(new ProcessGroup(child.pid, new Intake(output, options.onOutput), writable, ended))
      })
    })
  }

  /** Ends every process of the group; settles when none is left or KILL has been sent. Repeated calls wait for the first. */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#end(graceMs)
    return this.#stopping
  }

  async #end(graceMs: number): Promise<void> {
    this.#guard?.end("\n")
    this.#signal("SIGTERM")
    const deadline = Date.now() + graceMs
    for (let pause = 5; hasLivingMembers(this.pid); pause = Math.min(50, pause * 2)) {
      if (Date.now() >= deadline) {
        this.#signal("SIGKILL")
        break
      }
      await wait(pause)
    }
    this.#intake.close()
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, signal)
    } catch {
      // Nobody left to hear it.
    }
  }
}

const isWritable = (stream: Readable | Writable): stream is Writable => "write" in stream
