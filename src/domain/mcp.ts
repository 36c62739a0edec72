/**
 * Servers of the Model Context Protocol (MCP) that a node, or one conversation, takes tools from: how each is reached, and how it is doing.
 */
import { Schema } from "effect"
import { defineDocument } from "./document-definition.ts"
import { ConversationId } from "./ids.ts"

const texts = Schema.Record({ key: Schema.String, value: Schema.String })

/** A process that speaks over stdin and stdout. */
const McpStdioServer = Schema.Struct({
  /** Unique among the servers of a node, and among those of a conversation. */
  name: Schema.NonEmptyString,
  transport: Schema.Literal("stdio"),
  command: Schema.NonEmptyString,
  args: Schema.optional(Schema.Array(Schema.String)),
  /** Beside the few variables of the node that every command gets. */
  env: Schema.optional(texts),
  /** Absolute. Default: the working directory of the node, or of the conversation. */
  cwd: Schema.optional(Schema.String),
})

/** A client that was registered by hand, or whose id is the https address of a document that describes it. */
const McpOAuthClient = Schema.Struct({
  clientId: Schema.NonEmptyString,
  clientSecret: Schema.optional(Schema.NonEmptyString),
  /** The port on loopback that the browser comes back to, where the registration names one. */
  callbackPort: Schema.optional(Schema.Int.pipe(Schema.between(1, 65_535))),
})

/** `http`: Streamable HTTP, with the older HTTP+SSE where the server knows nothing else; `sse`: the older one at once. */
const McpHttpServer = Schema.Struct({
  name: Schema.NonEmptyString,
  transport: Schema.Literal("http", "sse"),
  /** An absolute http or https URL. */
  url: Schema.NonEmptyString,
  headers: Schema.optional(texts),
  /** How we are known at its login service; without it we register ourselves there. */
  oauth: Schema.optional(McpOAuthClient),
})

/** How a server is reached. Values are taken as they are: placeholders are for the configuration of the node alone. */
export const McpServer = Schema.Union(McpStdioServer, McpHttpServer)
export type McpServer = typeof McpServer.Type
export type McpHttpServer = typeof McpHttpServer.Type
export type McpOAuthClient = typeof McpOAuthClient.Type

/**
 * `connecting` → `ready` → (it is gone) `backoff` → `connecting` …; `needs_login`: it wants a login; `failed`: it is not tried again by
 * itself; `disabled`: the configuration says so.
 */
export const McpState = Schema.Literal("connecting", "ready", "backoff", "needs_login", "failed", "disabled")
export type McpState = typeof McpState.Type

/** A server as listings show it. Nothing of its environment and headers is in it. */
export const McpServerView = Schema.Struct({
  name: Schema.String,
  /** The conversation that it was handed over to; null: the node's own. */
  conversation_id: Schema.NullOr(ConversationId),
  transport: Schema.Literal("stdio", "http", "sse"),
  /** The command line, or the URL without its query. */
  target: Schema.String,
  state: McpState,
  /** Why it is not ready, in one line, or null. */
  detail: Schema.NullOr(Schema.String),
  /** `name version`, as it calls itself, once it was ready. */
  server: Schema.NullOr(Schema.String),
  protocol_version: Schema.NullOr(Schema.String),
  /** Names of its tools as models see them, in their order. */
  tools: Schema.Array(Schema.String),
  /** How often the connection was made anew. */
  restarts: Schema.NonNegativeInt,
})
export type McpServerView = typeof McpServerView.Type

/** Document `pi.mcp`: the servers that were handed over to a conversation. What is in `env` and `headers` is stored as it is. */
export const McpDocument = Schema.Struct({ servers: Schema.Array(McpServer) })
export type McpDocument = typeof McpDocument.Type

/** A fork goes on with the servers of its parent. */
export const mcpDocument = defineDocument({
  kind: "pi.mcp",
  version: 1,
  schema: McpDocument,
  scope: "conversation",
  fork: "current",
  initial: (): McpDocument => ({ servers: [] }),
})
