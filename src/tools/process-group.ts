/**
 * One shell command as a process group of its own.
 *
 * 1. The shell and all that it starts are one process group (what leaves it with setsid is on its own).
 * 2. stdout and stderr are one pipe, so they come in the order in which they were written. stdin is empty.
 * 3. The command ends when its shell ends: what still runs in the background keeps running and does not hold the call.
 * 4. {@link ProcessGroup.stop} ends the whole group: TERM, after a grace KILL.
 * 5. When the node dies, the group is ended: a guard process in it notices that its pipe to the node has closed.
 */
import type { Readable, Writable } from "node:stream"
import { hasLivingMembers } from "./living-members.ts"

export interface ProcessOptions {
  readonly command: string
  /** Absolute. */
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  readonly shell: "bash" | "sh"
  /** Takes output as it comes; while the promise that it may return is pending, no more is read. */
  readonly onOutput: (chunk: Buffer) => Promise<void> | undefined
}

/** How a command ended; one of the two is null. */
export interface ProcessExit {
  readonly exitCode: number | null
  readonly signal: NodeJS.Signals | null
}

/** How long output that is still on its way is waited for after the shell has ended, in milliseconds since the last of it. */
const quietMs = 150
const drainMs = 1000

const guard = 'while read -r _ <&3; do exit 0; done; trap "" TERM; kill -TERM 0; sleep 2; kill -KILL 0'

/**
 * The command is `$1`, its shell `$0`. With bash the output goes through `cat` to a real pipe: Node's pipes are sockets, which
 * `/dev/stderr` cannot open. The second `cat` keeps background processes from dying of a closed pipe. 63 is the descriptor that bash
 * itself holds of that pipe; inherited, it would keep the pipe open for a background process that has sent its output elsewhere.
 */
const launchers = {
  bash: `{ ${guard}; } </dev/null >/dev/null 2>&1 & exec "$0" -c "$1" > >(exec 3<&-; trap "" TERM; cat; exec cat >/dev/null) 2>&1 3<&- 63>&-`,
  sh: `{ ${guard}; } </dev/null >/dev/null 2>&1 & exec "$0" -c "$1" 2>&1 3<&-`,
}

const wait = (milliseconds: number) => new Promise<void>((resolve) => setTimeout(resolve, milliseconds))

export class ProcessGroup {
  readonly pid: number
  /** Settles when the shell has ended and its output has been taken. */
  readonly exit: Promise<ProcessExit>
  readonly #output: Readable
  readonly #guard: Writable | undefined
  #stopping: Promise<void> | undefined

  private constructor(
    pid: number,
    output: Readable,
    guardPipe: Writable | undefined,
    ended: Promise<ProcessExit>,
    taken: Taken,
  ) {
    this.pid = pid
    this.#output = output
    this.#guard = guardPipe
    this.exit = ended.then(async (exit) => {
      this.#dismissGuard()
      await this.#drain(taken)
      return exit
    })
    // Whoever stops the group may not ask how it ended.
    this.exit.catch(() => undefined)
  }

  /** Starts a command; fails with the system's error when there is no such shell or directory. */
  static async start(options: ProcessOptions): Promise<ProcessGroup> {
    // Loaded with the first command: it would cost every start of the program.
    const { execa } = await import("execa")
    const child = execa(options.shell, ["-c", launchers[options.shell], options.shell, options.command], {
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
        const taken: Taken = { at: Date.now(), over: false, busy: Promise.resolve() }
        take(output, options.onOutput, taken)
        const writable = guardPipe !== null && guardPipe !== undefined && isWritable(guardPipe) ? guardPipe : undefined
        writable?.on("error", () => undefined)
        resolve(new ProcessGroup(child.pid, output, writable, ended, taken))
      })
    })
  }

  /** Ends every process of the group; settles when none is left or KILL has been sent. Repeated calls wait for the first. */
  stop(graceMs: number): Promise<void> {
    this.#stopping ??= this.#end(graceMs)
    return this.#stopping
  }

  async #end(graceMs: number): Promise<void> {
    this.#dismissGuard()
    this.#signal("SIGTERM")
    const deadline = Date.now() + graceMs
    for (let pause = 5; hasLivingMembers(this.pid); pause = Math.min(50, pause * 2)) {
      if (Date.now() >= deadline) {
        this.#signal("SIGKILL")
        break
      }
      await wait(pause)
    }
    this.#output.destroy()
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      process.kill(-this.pid, signal)
    } catch {
      // Nobody left to hear it.
    }
  }

  #dismissGuard(): void {
    this.#guard?.end("\n")
  }

  /** Waits for the rest of the output: its end, or quiet while a background process keeps the pipe open. */
  async #drain(taken: Taken): Promise<void> {
    const deadline = Date.now() + drainMs
    taken.at = Date.now()
    while (!taken.over && Date.now() < deadline && Date.now() - taken.at < quietMs) await wait(5)
    this.#output.destroy()
    await taken.busy
  }
}

const isWritable = (stream: Readable | Writable): stream is Writable => "write" in stream

interface Taken {
  /** When output came last. */
  at: number
  over: boolean
  /** The consumer's work in progress. */
  busy: Promise<void>
}

const take = (output: Readable, onOutput: ProcessOptions["onOutput"], taken: Taken): void => {
  output.on("data", (chunk: Buffer) => {
    taken.at = Date.now()
    const pending = onOutput(chunk)
    if (pending === undefined) return
    output.pause()
    taken.busy = pending.finally(() => {
      taken.at = Date.now()
      output.resume()
    })
  })
  output.once("close", () => {
    taken.over = true
  })
  output.on("error", () => {
    taken.over = true
  })
}
