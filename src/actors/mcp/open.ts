/**
 * Makes connections to MCP servers with the protocol's own client: which transport, the handshake of either protocol era, the list of
 * tools, and the calls. Loaded with the first server: nothing of it costs a node that has none.
 */
import { AsyncLocalStorage } from "node:async_hooks"
import { basename } from "node:path"
import { pathToFileURL } from "node:url"
import { Client, type Tool, type Transport, type VersionNegotiationOptions } from "@modelcontextprotocol/client"
import { errorCode } from "../../domain/error-code.ts"
import {
  CallError,
  type CallOptions,
  ConnectError,
  type Connection,
  type OpenOptions,
  type ServerTool,
} from "./connection.ts"
import { callErrorOf, connectErrorOf, isTimeout, messageOf, scopeMissing, statusOf } from "./faults.ts"
import { type HttpTransport, httpAndSse, streamable } from "./http.ts"
import { wantScope } from "./oauth.ts"
import { StdioTransport } from "./stdio.ts"

/** Tools of one server that are taken. */
const maxTools = 512
/** The longest time that the protocol's client counts itself; ours is counted in call.ts. */
const noTimeout = 0x7fffffff
/** How long the end of a session may take, in ms. */
const endMs = 2_000
/** A server that knows only the older protocol may say nothing to the question for the newer one: this part of the start is for it. */
const probeShare = 0.5

const toolOf = ({ annotations, description = "", inputSchema, name }: Tool): ServerTool => ({
  name,
  description,
  inputSchema,
  readOnly: annotations?.readOnlyHint === true,
  idempotent: annotations?.idempotentHint === true,
})

/** Of two tools of one name the first counts. */
const toolsOf = (tools: ReadonlyArray<Tool>): ReadonlyArray<ServerTool> => {
  const byName = new Map<string, ServerTool>()
  for (const tool of tools.slice(0, maxTools)) if (!byName.has(tool.name)) byName.set(tool.name, toolOf(tool))
  return [...byName.values()]
}

type McpStdioServer = Extract<OpenOptions["server"], { readonly transport: "stdio" }>

/** What a shell says of a command that is not there, or is not executable. */
const isUnknownCommand = (code: number | null): boolean => code === 127 || code === 126

/** The call in whose course something happens: known where the server's question is part of an answer. */
const during = new AsyncLocalStorage<CallOptions>()

class OpenConnection {
  readonly #options: OpenOptions
  readonly #calls = new Set<CallOptions>()
  #client: Client
  #http: HttpTransport | null = null
  #process: StdioTransport | null = null
  /** Until then a closed connection is a failed attempt. */
  #opened = false
  #closing = false
  #lost = false
  /** What a process wrote to stderr last. */
  #lastWords = ""

  constructor(options: OpenOptions) {
    this.#options = options
    this.#client = this.#newClient("auto")
  }

  #newClient(mode: "auto" | "legacy"): Client {
    const { root, startupMs, version } = this.#options
    const probe = { timeoutMs: Math.ceil(startupMs * probeShare) }
    const versionNegotiation: VersionNegotiationOptions = { mode, probe }
    const client = new Client(
      { name: "super-pi", version },
      {
        capabilities: { roots: {}, elicitation: { form: { applyDefaults: true }, url: {} } },
        versionNegotiation,
        listChanged: { tools: { autoRefresh: false, debounceMs: 100, onChanged: () => void this.#relist() } },
        // What a server says of its answers is not held against it: the model reads them as they are.
        jsonSchemaValidator: {
          getValidator:
            () =>
            (
              input, // Any value is one of the type that is asked for.
            ) => ({ valid: true, data: input as never, errorMessage: undefined }),
        },
      },
    )
    client.setRequestHandler("roots/list", () => ({
      roots: [{ uri: pathToFileURL(root).href, name: basename(root) || root }],
    }))
    client.setRequestHandler("elicitation/create", async ({ params }) => this.#elicit(params))
    client.onclose = () => this.#gone("the connection was closed")
    client.onerror = (error) => this.#trouble(error)
    return client
  }

  async open(): Promise<Connection> {
    const { server, signal, startupMs } = this.#options
    const deadline = Date.now() + startupMs
    const giveUp = () => void this.close()
    signal.addEventListener("abort", giveUp, { once: true })
    try {
      signal.throwIfAborted()
      await this.#connect(deadline)
      const tools = toolsOf(await this.#list(Math.max(1, deadline - Date.now())))
      signal.throwIfAborted()
      this.#opened = true
      const own = this.#client.getServerVersion()
      return {
        server: own === undefined ? null : `${own.name} ${own.version}`,
        protocolVersion: this.#client.getNegotiatedProtocolVersion() ?? null,
        tools,
        call: (tool, args, options) => this.#call(tool, args, options),
        close: () => this.close(),
      }
    } catch (error) {
      const words = this.#lastWords === "" ? "" : `: ${this.#lastWords}`
      const { exit = null, fault = null } = this.#process ?? {}
      await this.close()
      if (fault !== null) throw new ConnectError("unreachable", fault)
      if (exit !== null && server.transport === "stdio") throw exitError(server.command, exit, words)
      await this.#noteScope(error)
      throw connectErrorOf(error)
    } finally {
      signal.removeEventListener("abort", giveUp)
    }
  }

  async #connect(deadline: number): Promise<void> {
    const { server, tokens } = this.#options
    const left = () => Math.max(1, deadline - Date.now())
    if (server.transport === "stdio") return this.#connectProcess(server, deadline)
    if (server.transport === "sse") {
      this.#http = await httpAndSse(server, tokens)
      await this.#attach(this.#http.transport, left())
      return
    }
    try {
      this.#http = await streamable(server, tokens)
      await this.#attach(this.#http.transport, left())
      return
    } catch (error) {
      const status = statusOf(error)
      const silent = isTimeout(error) && Date.now() < deadline
      if ((status === null && !silent) || status === 401 || status === 403) throw error
      await this.#renew("legacy")
      if (status !== 404 && status !== 405) {
        // A server that breaks over the question for the newer protocol is asked as an older client would.
        this.#http = await streamable(server, tokens)
        return await this.#attach(this.#http.transport, left()).catch(() => Promise.reject(error))
      }
      this.#http = await httpAndSse(server, tokens)
      await this.#attach(this.#http.transport, left()).catch((second: unknown) => {
        const way = `neither Streamable HTTP (status ${status}) nor HTTP+SSE (${messageOf(second)}) is spoken there`
        throw new ConnectError("unreachable", way)
      })
    }
  }

  async #connectProcess(server: McpStdioServer, deadline: number): Promise<void> {
    const left = () => Math.max(1, deadline - Date.now())
    const first = this.#spawn(server)
    try {
      await this.#attach(first, left())
    } catch (error) {
      // Some end when what comes first is not the older handshake: they get it at once, in another life.
      const { exit, fault } = first
      if (exit === null || fault !== null || isUnknownCommand(exit.code) || Date.now() >= deadline) throw error
      await first.close()
      await this.#renew("legacy")
      this.#options.signal.throwIfAborted()
      await this.#attach(this.#spawn(server), left())
    }
  }

  /** A client begins once. */
  async #renew(mode: "legacy"): Promise<void> {
    const before = this.#client
    before.onclose = () => undefined
    before.onerror = () => undefined
    await before.close().catch(() => undefined)
    this.#client = this.#newClient(mode)
  }

  #spawn(server: McpStdioServer): StdioTransport {
    const { env, log, root } = this.#options
    this.#process = new StdioTransport({
      command: server.command,
      args: server.args ?? [],
      env: server.env ?? {},
      nodeEnv: env,
      cwd: server.cwd ?? root,
      onStderr: (line) => {
        this.#lastWords = line.slice(0, 300)
        log(line)
      },
    })
    return this.#process
  }

  async #attach(transport: Transport, timeout: number): Promise<void> {
    try {
      await this.#client.connect(transport, { timeout })
    } catch (error) {
      const code = errorCode(error)
      if (code === "ENOENT" || code === "EACCES" || code === "ENOTDIR")
        throw new ConnectError("misconfigured", messageOf(error))
      throw error
    }
  }

  async #list(timeout: number): Promise<ReadonlyArray<Tool>> {
    if (this.#client.getServerCapabilities()?.tools === undefined) return []
    return (await this.#client.listTools({}, { timeout, cacheMode: "refresh" })).tools
  }

  async #relist(): Promise<void> {
    try {
      this.#options.onTools(toolsOf(await this.#list(this.#options.startupMs)))
    } catch (error) {
      if (this.#closing || this.#lost) return
      this.#options.log(`the list of tools was not read again: ${messageOf(error)}`)
    }
  }

  async #call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown> {
    const { onProgress, signal } = options
    const session = this.#http?.hasSession() === true
    this.#calls.add(options)
    try {
      return await during.run(options, () =>
        this.#client.callTool(
          { name: tool, arguments: { ...args } },
          {
            signal,
            timeout: noTimeout,
            onprogress: ({ message, progress, total }) => {
              const share = total === undefined ? `${progress}` : `${progress}/${total}`
              onProgress(message === undefined ? `${share}\n` : `${share} ${message.slice(0, 1000)}\n`)
            },
          },
        ),
      )
    } catch (error) {
      if (signal.aborted) throw new CallError("unanswered", messageOf(signal.reason), false)
      const fault = this.#process?.fault ?? null
      if (fault !== null) throw new CallError("unanswered", fault, true)
      await this.#noteScope(error)
      throw callErrorOf(error, session)
    } finally {
      this.#calls.delete(options)
    }
  }

  /** The next login asks for what was missing. */
  async #noteScope(error: unknown): Promise<void> {
    const { log, server, tokens } = this.#options
    const scope = scopeMissing(error)
    if (scope === null || tokens === null || server.transport === "stdio") return
    await wantScope(tokens, server, scope).catch((failure: unknown) => log(messageOf(failure)))
  }

  /** Asks through the call that it belongs to; where that cannot be told, only when all that run are of one conversation. */
  async #elicit(params: unknown): Promise<{ action: "accept" | "decline" | "cancel" }> {
    const running = [...this.#calls]
    const conversations = new Set(running.map(({ conversation }) => conversation))
    const call = during.getStore() ?? (conversations.size === 1 ? running.at(-1) : undefined)
    if (call === undefined || call.elicit === null) return { action: "decline" }
    // elicitation.ts makes the answer.
    return (await call.elicit(params)) as { action: "accept" | "decline" | "cancel" }
  }

  /** Errors outside of requests. A stream for messages of the server that cannot be had any more is the end of the connection. */
  #trouble(error: Error): void {
    if (this.#closing) return
    const message = messageOf(error)
    // What belongs to a request that is over.
    if (/unknown (?:message ID|token)/.test(message)) return
    this.#options.log(message)
    if (/Maximum reconnection attempts/.test(message)) this.#gone("the server does not answer any more")
  }

  #gone(reason: string): void {
    if (!this.#opened || this.#closing || this.#lost) return
    this.#lost = true
    const { exit = null, fault = null } = this.#process ?? {}
    const ended = exit === null ? reason : `the process ended (${exit.signal ?? `exit code ${exit.code}`})`
    this.#options.onLost(fault ?? ended)
  }

  async close(): Promise<void> {
    this.#closing = true
    const end = this.#lost ? Promise.resolve() : (this.#http?.end().catch(() => undefined) ?? Promise.resolve())
    await Promise.race([end, new Promise((resolve) => setTimeout(resolve, endMs).unref())])
    await this.#client.close().catch(() => undefined)
    await this.#process?.close()
  }
}

const exitError = (
  command: string,
  { code, signal }: NonNullable<StdioTransport["exit"]>,
  words: string,
): ConnectError =>
  isUnknownCommand(code)
    ? new ConnectError(
        "misconfigured",
        `command: expected a program, got ${JSON.stringify(command)} (not found, or not executable)`,
      )
    : new ConnectError("unreachable", `the process ended at once (${signal ?? `exit code ${code}`})${words}`)

/** Connects, and lists the tools; rejects with {@link ConnectError}, having ended what was begun. */
export const openConnection = (options: OpenOptions): Promise<Connection> => new OpenConnection(options).open()
