/** Starts and drives `programs/peer.ts` processes, and waits for what they tell. */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { programEnv } from "./bundle.ts"

export interface Told {
  readonly news?: string
  readonly cause?: string
  readonly id?: number
  readonly result?: { readonly [key: string]: unknown }
  readonly failed?: string
  readonly watch?: number
  readonly type?: string
  readonly seq?: number
}

export interface PeerProcess {
  readonly pid: number
  /** Sends a command; completes with its answer. */
  readonly ask: (op: string, rest?: object) => Promise<Told>
  /** Sends a command without waiting; answers its id. */
  readonly begin: (op: string, rest?: object) => number
  /** Completes with the first line, told already or to come, that matches. */
  readonly told: (matches: (line: Told) => boolean) => Promise<Told>
  readonly news: (name: string) => Promise<Told>
  /** Everything told so far. */
  readonly lines: ReadonlyArray<Told>
  readonly kill: (signal: NodeJS.Signals) => void
  readonly exit: Promise<void>
}

/** Starts a peer; `env` as documented in the program. */
export const startPeer = (program: string, env: Readonly<Record<string, string>>): PeerProcess => {
  const child: ChildProcess = spawn(process.execPath, [program], {
    stdio: ["pipe", "pipe", "inherit"],
    env: { ...process.env, ...programEnv, ...env },
  })
  const { stdin, stdout } = child
  if (stdin === null || stdout === null) throw new Error("no pipes")
  const lines: Array<Told> = []
  let waiting: Array<{
    readonly matches: (line: Told) => boolean
    readonly resolve: (line: Told) => void
    readonly reject: (error: Error) => void
  }> = []
  child.on("exit", () => {
    const error = new Error(`process ${env.NAME} ended; it told ${JSON.stringify(lines)}`)
    for (const one of waiting.splice(0)) one.reject(error)
  })
  createInterface({ input: stdout }).on("line", (text) => {
    const line: Told = JSON.parse(text)
    lines.push(line)
    const met = waiting.filter((one) => one.matches(line))
    waiting = waiting.filter((one) => !met.includes(one))
    for (const one of met) one.resolve(line)
  })
  stdin.on("error", () => undefined)
  const told = (matches: (line: Told) => boolean) =>
    new Promise<Told>((resolve, reject) => {
      const line = lines.find(matches)
      if (line !== undefined) resolve(line)
      else if (child.exitCode !== null) reject(new Error(`process ${env.NAME} has ended`))
      else waiting.push({ matches, resolve, reject })
    })
  let ids = 0
  const begin = (op: string, rest: object = {}) => {
    const id = ++ids
    stdin.write(`${JSON.stringify({ id, op, ...rest })}\n`)
    return id
  }
  return {
    pid: child.pid ?? 0,
    begin,
    ask: (op, rest) => {
      const id = begin(op, rest)
      return told((line) => line.id === id)
    },
    told,
    news: (name) => told((line) => line.news === name),
    lines,
    kill: (signal) => void child.kill(signal),
    exit: new Promise((resolve) => child.on("exit", () => resolve())),
  }
}
