/**
 * `super-pi mcp` as a process, and the client that started it: requests in, messages out.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { launcher } from "../../cli/program.ts"

/** A message as it came. */
export interface Message {
  readonly id?: number
  readonly method?: string
  readonly params?: { readonly message?: string }
  readonly result?: Record<string, unknown>
  readonly error?: { readonly code: number; readonly message: string }
}

export interface McpProcess {
  readonly child: ChildProcess
  /** Sends a request and does not wait. Answers its id. */
  readonly begin: (method: string, params?: object) => number
  readonly ask: (method: string, params?: object) => Promise<Message>
  readonly notify: (method: string, params?: object) => void
  /** The first message, told already or to come, that matches. Rejects when the process ends before. */
  readonly told: (matches: (message: Message) => boolean) => Promise<Message>
  /** Everything on stdout that is no message of the protocol. */
  readonly noise: ReadonlyArray<string>
  /** The client's side is over. */
  readonly end: () => void
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>
}

/** Starts one and says hello. */
export const startMcpProcess = async (
  env: Record<string, string>,
  cwd: string,
  args: ReadonlyArray<string> = [],
): Promise<McpProcess> => {
  const child = spawn(process.execPath, [launcher, "mcp", ...args], { cwd, env, stdio: ["pipe", "pipe", "inherit"] })
  child.stdin.on("error", () => {})
  const ended = new Promise<{ code: number | null; signal: string | null }>((done) => {
    child.on("close", (code, signal) => done({ code, signal }))
  })
  const messages: Array<Message> = []
  const noise: Array<string> = []
  const looks = new Set<() => void>()
  createInterface({ input: child.stdout }).on("line", (line) => {
    try {
      messages.push(JSON.parse(line))
    } catch {
      noise.push(line)
    }
    for (const look of [...looks]) look()
  })
  const told = (matches: (message: Message) => boolean) =>
    new Promise<Message>((done, fail) => {
      const look = () => {
        const found = messages.find(matches)
        if (found === undefined) return
        looks.delete(look)
        done(found)
      }
      looks.add(look)
      void ended.then(() => fail(new Error(`super-pi mcp ended; it told ${JSON.stringify(messages)}`)))
      look()
    })
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  let ids = 0
  const begin = (method: string, params: object = {}) => {
    const id = ++ids
    send({ id, method, params })
    return id
  }
  const ask = (method: string, params?: object) => {
    const id = begin(method, params)
    return told((message) => message.id === id && message.method === undefined)
  }
  await ask("initialize", {
    protocolVersion: "2025-11-25",
    capabilities: {},
    clientInfo: { name: "test", version: "1" },
  })
  send({ method: "notifications/initialized" })
  return {
    child,
    begin,
    ask,
    notify: (method, params = {}) => void send({ method, params }),
    told,
    noise,
    end: () => child.stdin.end(),
    ended,
  }
}
