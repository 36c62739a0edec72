/**
 * Our client as the official conformance suite runs it: connects to the address of the last argument, logs in where that is wanted (as a
 * person who agrees to everything), makes the calls that the scenario names or else one of each tool, and leaves.
 */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { CallOptions, Connection } from "../../../src/actors/mcp/connection.ts"
import { login } from "../../../src/actors/mcp/login.ts"
import { openConnection } from "../../../src/actors/mcp/open.ts"
import { tokenFiles } from "../../../src/actors/mcp/tokens.ts"
import type { McpHttpServer } from "../../../src/domain/mcp.ts"

const url = process.argv.at(-1) ?? ""
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ""
const tokens = tokenFiles(mkdtempSync(join(tmpdir(), "sp-conformance-")))

/** What a scenario hands over, beside the address. */
interface Context {
  readonly client_id?: string
  readonly client_secret?: string
  readonly toolCalls?: ReadonlyArray<{ readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }>
}
const context: Context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}")
const { client_secret: clientSecret, toolCalls } = context
/** The id that the suite knows to be described by a document. */
const documentId = "https://conformance-test.local/client-metadata.json"
const clientId = scenario === "auth/basic-cimd" ? documentId : context.client_id
const oauth =
  clientId === undefined ? {} : { oauth: { clientId, ...(clientSecret === undefined ? {} : { clientSecret }) } }
const server: McpHttpServer = { name: "conformance", transport: "http", url, ...oauth }
const signal = new AbortController().signal
const say = (line: string) => process.stderr.write(`${line}\n`)

const connect = () =>
  openConnection({
    server,
    root: process.cwd(),
    env: process.env,
    startupMs: 60_000,
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
    signal: AbortSignal.timeout(60_000),
    open: (address) => void fetch(address).catch((error: unknown) => say(String(error))),
  })

const wantsLogin = (error: unknown): boolean =>
  error instanceof Error && "problem" in error && error.problem === "login"

/** A person who is told once more that a login is needed, as after the move to another login service, logs in once more. */
const connected = async (logins = 2): Promise<Connection> => {
  try {
    return await connect()
  } catch (error) {
    if (!wantsLogin(error) || logins === 0) throw error
    await agree()
    return connected(logins - 1)
  }
}

const options: CallOptions = {
  signal,
  onProgress: () => undefined,
  elicit: async () => ({ action: "accept", content: {} }),
  conversation: 1,
}

/** Made up; an argument called `schema` is the schema of the first tool, as it came. */
const argumentsFor = (
  schema: Readonly<Record<string, unknown>>,
  first: Readonly<Record<string, unknown>> | undefined,
): Record<string, unknown> => {
  const properties = (schema.properties ?? {}) as Record<string, { readonly type?: string }>
  const values: Readonly<Record<string, unknown>> = { number: 2, integer: 2, boolean: true, array: [], object: {} }
  return Object.fromEntries(
    Object.entries(properties).map(([key, { type }]) => [
      key,
      key === "schema" ? first : (values[type ?? ""] ?? "text"),
    ]),
  )
}

const main = async (): Promise<void> => {
  let connection = await connected()
  const [first] = connection.tools
  const calls =
    toolCalls ??
    connection.tools.map(({ inputSchema, name }) => ({
      name,
      arguments: argumentsFor(inputSchema, first?.inputSchema),
    }))
  for (const one of calls) {
    const call = () => connection.call(one.name, one.arguments, options)
    await call().catch(async (error: unknown) => {
      if (!wantsLogin(error)) return say(String(error))
      // As a node does after a login in another process: another connection, and the call once more.
      await agree()
      await connection.close()
      connection = await connect()
      await call().catch((again: unknown) => say(String(again)))
    })
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
