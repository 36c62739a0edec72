/**
 * An MCP server behind an address: Streamable HTTP, and the older HTTP+SSE for servers that know nothing else.
 */
import {
  type JSONRPCMessage,
  SSEClientTransport,
  StreamableHTTPClientTransport,
  type Transport,
} from "@modelcontextprotocol/client"
import { isRecord } from "../../domain/json.ts"
import type { McpHttpServer } from "../../domain/mcp.ts"
import { fetchFor } from "./bounded-fetch.ts"
import { nodeLogin } from "./refresh.ts"
import type { TokenStore } from "./tokens.ts"

/** Marks the error that stands for an answer that will not come: its stream has ended. */
export const streamEnded = "super-pi: the stream of the answer ended before it came"

/** How often a stream that broke off is taken up again where it was. */
const reconnectionOptions = {
  initialReconnectionDelay: 500,
  maxReconnectionDelay: 5_000,
  reconnectionDelayGrowFactor: 2,
  maxRetries: 4,
}

type SendOptions = Parameters<StreamableHTTPClientTransport["send"]>[1]

/** Tells the protocol when the stream of a request ends without its answer. */
class AnsweringTransport extends StreamableHTTPClientTransport {
  override send(message: JSONRPCMessage | Array<JSONRPCMessage>, options?: SendOptions): Promise<void> {
    if (!isRecord(message) || !("method" in message) || !("id" in message)) return super.send(message, options)
    const { id } = message
    const onRequestStreamEnd = () => {
      options?.onRequestStreamEnd?.()
      // Behind the answer nobody listens to it any more.
      this.onmessage?.({ jsonrpc: "2.0", id, error: { code: -32_000, message: streamEnded } })
    }
    return super.send(message, { ...options, onRequestStreamEnd })
  }
}

export interface HttpTransport {
  readonly transport: Transport
  /** Ends the session of the server, where it has one. */
  readonly end: () => Promise<void>
  readonly hasSession: () => boolean
}

export const streamable = async (server: McpHttpServer, tokens: TokenStore | null): Promise<HttpTransport> => {
  const authProvider = await nodeLogin(server, tokens)
  const transport = new AnsweringTransport(new URL(server.url), {
    fetch: fetchFor(server),
    reconnectionOptions,
    // Only a person can widen what a login may do.
    onInsufficientScope: "throw",
    ...(authProvider === null ? {} : { authProvider }),
  })
  return {
    transport,
    end: () => transport.terminateSession(),
    hasSession: () => transport.sessionId !== undefined,
  }
}

export const httpAndSse = async (server: McpHttpServer, tokens: TokenStore | null): Promise<HttpTransport> => {
  const authProvider = await nodeLogin(server, tokens)
  const transport = new SSEClientTransport(new URL(server.url), {
    fetch: fetchFor(server),
    ...(authProvider === null ? {} : { authProvider }),
  })
  return { transport, end: () => Promise.resolve(), hasSession: () => false }
}
