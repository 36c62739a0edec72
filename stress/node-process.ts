/**
 * The node under test: a real process of the built program that serves a database on a unix socket, is killed and started again.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { RpcClient } from "./rpc-client.ts"

export interface NodeSettings {
  /** Path of `bin/super-pi`. */
  readonly program: string
  /** The workspace. */
  readonly directory: string
  readonly db: string
  readonly socket: string
  readonly env: Readonly<Record<string, string>>
}

/** How long a start may take, and how often it is looked for, in milliseconds. */
const startLimit = 60_000
const startPoll = 10

/** How long a clean stop may take, in milliseconds. */
const stopLimit = 30_000

const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds))

export class NodeProcess {
  readonly #settings: NodeSettings
  #child: ChildProcess | null = null
  #exited: Promise<void> = Promise.resolve()
  #meant = false
  stderr = ""
  /** Lives that ended without our doing; each is a fault. */
  readonly accidents: Array<string> = []

  constructor(settings: NodeSettings) {
    this.#settings = settings
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Starts a life and resolves with a connection once it answers. */
  async start(): Promise<RpcClient> {
    const { program, directory, db, socket, env } = this.#settings
    this.#meant = false
    this.stderr = ""
    const child = spawn(process.execPath, [program, "rpc", "--unix", socket, "--db", db, "--mode", "auto"], {
      cwd: directory,
      env: { PATH: process.env.PATH ?? "", HOME: directory, TMPDIR: directory, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    })
    this.#child = child
    child.stderr?.on("data", (chunk) => {
      this.stderr = (this.stderr + chunk).slice(-65_536)
    })
    this.#exited = new Promise((resolve) => {
      child.on("close", (code, signal) => {
        if (!this.#meant)
          this.accidents.push(`the node ended by itself (${signal ?? `code ${code}`}): ${this.stderr.trim()}`)
        resolve()
      })
    })
    return await this.connect()
  }

  /** Connects to the present life; waits for its socket to answer. */
  async connect(): Promise<RpcClient> {
    const until = Date.now() + startLimit
    for (;;) {
      const client = await RpcClient.connect(this.#settings.socket).catch(() => null)
      if (client !== null) return client
      if (this.#child?.exitCode != null) throw new Error(`the node did not start: ${this.stderr.trim()}`)
      if (Date.now() > until) throw new Error(`the node did not answer within ${startLimit} ms: ${this.stderr.trim()}`)
      await wait(startPoll)
    }
  }

  async kill(): Promise<void> {
    this.#meant = true
    this.#child?.kill("SIGKILL")
    await this.#exited
  }

  /** A clean stop; resolves with the exit code, null where a signal ended it (SIGKILL after the limit). */
  async stop(): Promise<number | null> {
    this.#meant = true
    const child = this.#child
    child?.kill("SIGTERM")
    const timer = setTimeout(() => child?.kill("SIGKILL"), stopLimit)
    await this.#exited
    clearTimeout(timer)
    return child?.exitCode ?? null
  }
}
