/**
 * The part of the section `mcp` of the settings that is about serving MCP; see docs/mcp-server.md.
 */
import { Schema } from "effect"

export const McpServeSettings = Schema.Struct({
  /** The harness of direct calls where a client names none. Default: the default harness. */
  harness: Schema.optional(Schema.NonEmptyString),
  /** A session over HTTP that is not used for this long is ended, in ms. Default 3,600,000. */
  sessionTtlMs: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** Sessions over HTTP at once. Default 1,000. */
  maxSessions: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** Origins of web pages that may call `/mcp` while no token is configured, besides loopback ones. */
  allowedOrigins: Schema.optional(Schema.Array(Schema.NonEmptyString)),
})
export type McpServeSettings = typeof McpServeSettings.Type
