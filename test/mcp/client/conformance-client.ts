/**
 * Our client as the official conformance suite runs it: connects to the address of the last argument, logs in where that is wanted (as a
 * person who agrees to everything), calls each tool, and leaves.
 */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type CallOptions, ConnectError } from "../../../src/actors/mcp/connection.ts"
import { login } from "../../../src/actors/mcp/login.ts"
import { openConnection } from "../../../src/actors/mcp/open.ts"
import { tokenFiles } from "../../../src/actors/mcp/tokens.ts"

const url = process.argv.at(-1) ?? ""
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ""
const tokens = tokenFiles(mkdtempSync(join(tmpdir(), "sp-conformance-")))
const server = { name: "conformance", transport: "http", url } as const
const signal = new AbortController().signal
const say = (line: string) => process.stderr.write(`${line}\n`)

const connect = () =>
  openConnection({
    server,
    root: process.cwd(),
    env: process.env,
    startupMs: 10_000,
    signal,
    tokens,
    version: "1.0.0",
    onTools: () => undefined,
    onLost: (reason) => say(`lost: ${reason}`),
    log: say,
  })

const agree = () =>
  login({
    server,
    tokens,
    version: "1.0.0",
    signal: AbortSignal.timeout(15_000),
    open: (address) => void fetch(address).catch((error: unknown) => say(String(error))),
  })

const withLogin = async <A>(work: () => Promise<A>): Promise<A> => {
  try {
    return await work()
  } catch (error) {
    const wanted = error instanceof Error && "problem" in error && error.problem === "login"
    if (!wanted) throw error
    await agree()
    return work()
  }
}

const options: CallOptions = {
  signal,
  onProgress: () => undefined,
  elicit: async () => ({ action: "accept", content: {} }),
  conversation: 1,
}

const argumentsFor = (schema: Readonly<Record<string, unknown>>): Record<string, unknown> => {
  const properties = (schema.properties ?? {}) as Record<string, { readonly type?: string }>
  const values: Readonly<Record<string, unknown>> = { number: 2, integer: 2, boolean: true, array: [], object: {} }
  return Object.fromEntries(Object.entries(properties).map(([key, { type }]) => [key, values[type ?? ""] ?? "text"]))
}

const main = async (): Promise<void> => {
  let connection = await withLogin(connect)
  for (const tool of connection.tools) {
    const call = () => connection.call(tool.name, argumentsFor(tool.inputSchema), options)
    const again = async () => {
      await connection.close()
      connection = await connect()
      return call()
    }
    await withLogin(call).catch((error: unknown) => (error instanceof ConnectError ? again() : say(String(error))))
  }
  await connection.close()
}

main().then(
  () => process.exit(0),
  (error: unknown) => {
    say(`${scenario}: ${error}`)
    process.exit(1)
  },
)
