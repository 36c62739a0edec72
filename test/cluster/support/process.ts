/**
 * One node of a cluster under test: a real process of the built program, `node dist/node.js`, with directories of its own, that can be killed,
 * stopped, woken and started again under the same name and ports.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { appendFileSync } from "node:fs"
import { resolve } from "node:path"

const built = resolve(import.meta.dirname, "../../../dist/node.js")

export interface NodeSettings {
  /** Name among the nodes, `n1` and so on. */
  readonly name: string
  /** Of its gateway. */
  readonly port: number
  /** Workspace of its conversations. */
  readonly directory: string
  /** File that its stderr goes to. */
  readonly log: string
  readonly args: ReadonlyArray<string>
  /** Path of `dist/node.js`; default the repository's, seen from this file. */
  readonly program?: string
  readonly env: Readonly<Record<string, string>>
  /** Words of a command that it is started through, for example in a network of its own. */
  readonly through: ReadonlyArray<string>
}

export interface NodeEnd {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

export class NodeProcess {
  readonly settings: NodeSettings
  #child: ChildProcess | null = null
  #ended: Promise<NodeEnd> = Promise.resolve({ code: null, signal: null })
  #meant = false
  /** What this life wrote to stderr, at most its last 64 KiB. */
  stderr = ""
  /** Lives that ended without our doing; each is a fault. */
  readonly accidents: Array<string> = []

  constructor(settings: NodeSettings) {
    this.settings = settings
  }

  get name(): string {
    return this.settings.name
  }

  get url(): string {
    return `http://127.0.0.1:${this.settings.port}`
  }

  /** Whether it was started and has not ended. */
  get runs(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Of its present life. */
  get pid(): number | null {
    return this.runs ? (this.#child?.pid ?? null) : null
  }

  get ended(): Promise<NodeEnd> {
    return this.#ended
  }

  start(): void {
    const { args, directory, env, log, port, program = built, through } = this.settings
    this.#meant = false
    this.stderr = ""
    const [command = "", ...words] = [...through, process.execPath, program, "--port", String(port), ...args]
    const child = spawn(command, words, {
      cwd: directory,
      env: { PATH: process.env.PATH ?? "", TMPDIR: directory, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    })
    this.#child = child
    child.stderr?.setEncoding("utf8").on("data", (chunk: string) => {
      this.stderr = (this.stderr + chunk).slice(-65_536)
      appendFileSync(log, chunk)
    })
    this.#ended = new Promise((done) => {
      // not `close`: a command that it ran may hold its stderr a little longer
      child.on("exit", (code, signal) => {
        if (!this.#meant)
          this.accidents.push(`${this.name} ended (${signal ?? code}): ${this.stderr.trim().slice(-2_000)}`)
        done({ code, signal })
      })
    })
  }

  /** The next end is no accident. */
  expectEnd(): void {
    this.#meant = true
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal)
  }

  async kill(): Promise<NodeEnd> {
    this.expectEnd()
    this.signal("SIGKILL")
    return this.#ended
  }

  async terminate(): Promise<NodeEnd> {
    this.expectEnd()
    this.signal("SIGTERM")
    return this.#ended
  }

  /** The status of one of its probes; null while it does not answer. */
  async probe(path: "/ready" | "/health"): Promise<number | null> {
    if (this.settings.through.length > 0) return this.#probeThrough(path)
    try {
      const response = await fetch(`${this.url}${path}`, { signal: AbortSignal.timeout(5_000) })
      await response.arrayBuffer()
      return response.status
    } catch {
      return null
    }
  }

  /** From where it runs: nobody else reaches it there. */
  #probeThrough(path: string): Promise<number | null> {
    const ask = `fetch("${this.url}${path}", { signal: AbortSignal.timeout(5000) })
      .then((response) => console.log(response.status), () => console.log("null"))`
    const [command = "", ...words] = [...this.settings.through, process.execPath, "-e", ask]
    return new Promise((done) =>
      execFile(command, words, (error, out) => done(error === null ? JSON.parse(out) : null)),
    )
  }
}
