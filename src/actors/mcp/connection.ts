/**
 * One live connection to an MCP server, whatever it runs over. Load `open.ts` lazily: it brings the protocol's own client.
 */
import type { McpServer } from "../../domain/mcp.ts"
import type { TokenStore } from "./tokens.ts"

/** A tool as its server describes it; nothing of it is trusted. */
export interface ServerTool {
  readonly name: string
  readonly description: string
  /** A JSON Schema of an object. */
  readonly inputSchema: Readonly<Record<string, unknown>>
  readonly readOnly: boolean
  readonly idempotent: boolean
}

/** Why a connection was not made, or is no more. */
export type ConnectProblem =
  /** Nothing that another attempt would change: the command is not there, the address is none. */
  | "misconfigured"
  /** The server wants a login. */
  | "login"
  | "unreachable"

export class ConnectError extends Error {
  readonly problem: ConnectProblem
  constructor(problem: ConnectProblem, message: string) {
    super(message)
    this.problem = problem
  }
}

/** What became of a call that got no answer. */
export type CallProblem =
  /** The server has not seen it: it can be made again on another connection. */
  | "undelivered"
  /** It wants a login; the call was not carried out. */
  | "login"
  /** The server refused it, or answered what is no answer: it is over. */
  | "refused"
  /** It may have been carried out. */
  | "unanswered"

export class CallError extends Error {
  readonly problem: CallProblem
  /** Whether the connection is of no use any more. */
  readonly lost: boolean
  /** The server only wants another handshake. */
  readonly sessionGone: boolean
  constructor(problem: CallProblem, message: string, lost: boolean, sessionGone = false) {
    super(message)
    this.problem = problem
    this.lost = lost
    this.sessionGone = sessionGone
  }
}

export interface CallOptions {
  readonly signal: AbortSignal
  readonly onProgress: (text: string) => void
  /** Asks the person; null: nobody can be asked. Gives the protocol's answer. */
  readonly elicit: ((params: unknown) => Promise<unknown>) | null
  /** The conversation that calls: what another one asks is never shown to it. */
  readonly conversation: number
}

export interface Connection {
  /** `name version`, as the server calls itself. */
  readonly server: string | null
  readonly protocolVersion: string | null
  /** As listed when the connection was made. */
  readonly tools: ReadonlyArray<ServerTool>
  /** Gives what the server answered; rejects with {@link CallError}. */
  readonly call: (tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions) => Promise<unknown>
  /** Ends the session and the process. Never rejects. */
  readonly close: () => Promise<void>
}

export interface OpenOptions {
  /** With every placeholder replaced. */
  readonly server: McpServer
  /** Working directory of a process that names none, and what the server is told to work in. Absolute. */
  readonly root: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** How long the handshake and the list of tools may take together, in ms. */
  readonly startupMs: number
  /** Aborted: the attempt is given up, and what it has started is ended. */
  readonly signal: AbortSignal
  /** Logins of servers; null: none are kept. */
  readonly tokens: TokenStore | null
  readonly version: string
  readonly onTools: (tools: ReadonlyArray<ServerTool>) => void
  /** The connection is gone, once, and not after `close`. */
  readonly onLost: (reason: string) => void
  readonly log: (line: string) => void
}
