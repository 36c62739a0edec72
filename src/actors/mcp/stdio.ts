/**
 * An MCP server as a process: one JSON-RPC message per line on its stdin and stdout.
 *
 * 1. The process and all that it starts are one process group, which is ended as a whole: stdin closed, after a grace TERM, then KILL.
 * 2. When the node dies, also by SIGKILL, the group is ended: a guard in it notices that its pipe to the node has closed.
 * 3. What is no message is skipped; a line longer than 10 MiB ends the connection, and nothing more is read of it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import type { Writable } from "node:stream"
import { type JSONRPCMessage, ReadBuffer, serializeMessage, type Transport } from "@modelcontextprotocol/client"
import { commandEnvironment } from "../../tools/environment.ts"
import { hasLivingMembers } from "../../tools/living-members.ts"

export interface StdioOptions {
  readonly command: string
  readonly args: ReadonlyArray<string>
  readonly env: Readonly<Record<string, string>>
  /** The node's environment. */
  readonly nodeEnv: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** One line of stderr, cut at 2,000 characters. */
  readonly onStderr: (line: string) => void
}

const maxLineBytes = 10 * 1024 * 1024
const stderrChars = 2000
/** How long a server may take to end after its stdin was closed, and after TERM, in ms. */
const quietGraceMs = 500
const termGraceMs = 2000

/** The pipe of descriptor 3 ends with the node. The group's shell is replaced by the server; what it does not know ends with 127. */
const guard =
  '{ read -r end <&3; trap "" TERM; kill -TERM 0; sleep 2; kill -KILL 0; } </dev/null >/dev/null 2>&1 & exec "$@" 3<&-'

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  /** How the process ended, once it has. */
  exit: { readonly code: number | null; readonly signal: string | null } | null = null
  /** Why we have ended the connection ourselves. */
  fault: string | null = null
  readonly #options: StdioOptions
  readonly #buffer = new ReadBuffer({ maxBufferSize: maxLineBytes })
  #child: ChildProcess | null = null
  #guard: Writable | null = null
  #closing: Promise<void> | null = null
  #closed = false

  /** By these the protocol's client knows a process: one that says nothing to a question of the newer protocol may know the older one. */
  get pid(): number | null {
    return this.#child?.pid ?? null
  }
  get stderr(): null {
    return null
  }

  constructor(options: StdioOptions) {
    this.#options = options
  }

  start(): Promise<void> {
    const { args, command, cwd, env, nodeEnv } = this.#options
    const guarded = process.platform !== "win32"
    const words = guarded ? ["-c", guard, "mcp", command, ...args] : [...args]
    const child = spawn(guarded ? "/bin/sh" : command, words, {
      cwd,
      env: commandEnvironment(nodeEnv, env),
      stdio: ["pipe", "pipe", "pipe", guarded ? "pipe" : "ignore"],
      detached: guarded,
      windowsHide: true,
    })
    this.#child = child
    this.#guard = (child.stdio[3] as Writable | null | undefined) ?? null // a pipe to the child is writable
    const failed = (error: Error) => this.onerror?.(error)
    this.#guard?.on("error", () => undefined)
    child.stdin?.on("error", failed)
    child.stdout?.on("error", failed)
    child.stderr?.on("error", failed)
    child.stdout?.on("data", (chunk: Buffer) => this.#take(chunk))
    this.#followStderr(child)
    child.once("exit", (code, signal) => {
      this.exit = { code, signal }
    })
    // The pipes may be held open by what the server has started: its own end is the end.
    child.once("exit", () => setTimeout(() => this.#ended(), 20))
    child.once("close", () => this.#ended())
    return new Promise((resolve, reject) => {
      child.once("spawn", resolve)
      child.once("error", (error) => {
        reject(error)
        this.#ended()
      })
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.#child?.stdin
      if (stdin === null || stdin === undefined || this.#closed || !stdin.writable) {
        return reject(new Error("the process has ended"))
      }
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    })
  }

  close(): Promise<void> {
    this.#closing ??= this.#end()
    return this.#closing
  }

  #take(chunk: Buffer): void {
    if (this.#closed) return
    try {
      this.#buffer.append(chunk)
    } catch {
      this.fault = `a line of the process was longer than ${maxLineBytes / 1024 / 1024} MiB`
      this.#child?.stdout?.destroy()
      this.#ended()
      return
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        this.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    }
  }

  #followStderr(child: ChildProcess): void {
    let rest = ""
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      const lines = (rest + text).split("\n")
      rest = (lines.pop() ?? "").slice(-stderrChars)
      for (const line of lines) if (line.trim() !== "") this.#options.onStderr(line.slice(0, stderrChars))
    })
    child.stderr?.on("end", () => {
      if (rest.trim() !== "") this.#options.onStderr(rest)
    })
  }

  #ended(): void {
    if (this.#closed) return
    this.#closed = true
    this.#buffer.clear()
    this.onclose?.()
    void this.close()
  }

  async #end(): Promise<void> {
    const child = this.#child
    const pid = child?.pid
    if (child === null || pid === undefined) return
    child.stdin?.end()
    const gone = new Promise<void>((resolve) => {
      if (this.exit !== null) resolve()
      child.once("exit", () => resolve())
    })
    await Promise.race([gone, wait(quietGraceMs)])
    await this.#endGroup(child, pid)
    for (const stream of [child.stdin, child.stdout, child.stderr, this.#guard]) stream?.destroy()
    this.#ended()
  }

  /** Also what the server has left behind. */
  async #endGroup(child: ChildProcess, pid: number): Promise<void> {
    if (process.platform === "win32") {
      child.kill("SIGKILL")
      return
    }
    const signal = (name: NodeJS.Signals) => {
      try {
        process.kill(-pid, name)
      } catch {
        // Nobody is left to hear it.
      }
    }
    // The guard notices as well, and would outlive everything else by its own grace: it is ended with the rest.
    signal("SIGTERM")
    const deadline = Date.now() + termGraceMs
    for (let pause = 5; hasLivingMembers(pid) && Date.now() < deadline; pause = Math.min(50, pause * 2))
      await wait(pause)
    signal("SIGKILL")
  }
}
