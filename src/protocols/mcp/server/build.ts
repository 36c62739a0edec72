/**
 * The server of one connection, on the official package: tools, prompts, resources and completions. It is made anew for every session, and
 * for every request of the stateless protocol; what outlives it is in the connection.
 */
import {
  McpServer,
  type McpServerOptions,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  ResourceTemplate,
  type ServerContext,
} from "@modelcontextprotocol/server"
import { Effect } from "effect"
import type { HarnessCapabilities, HarnessListing } from "../../../domain/harness-view.ts"
import { ConversationId } from "../../../domain/ids.ts"
import type { JsonObject } from "../../../domain/json.ts"
import { type Answers, sayTo } from "./answers.ts"
import type { Connection, McpService, ServedTool, WorkspaceRules } from "./connection.ts"
import {
  contentOf,
  conversationNumber,
  hintsOf,
  structuredOf,
  transcriptLines,
  transcriptTemplate,
  transcriptUri,
} from "./content.ts"
import { anyArguments, textArguments } from "./schemas.ts"
import { runHarnessTask } from "./task.ts"

/** How the server is reached. */
export interface Reach {
  /** Requests carry everything themselves (2026-07-28): the ids of two clients may be the same. */
  readonly stateless: boolean
  /** The server can tell the client something between requests. */
  readonly pushes: boolean
}

/** Resources of one page. */
const pageSize = 100

const contextUri = "superpi://workspace/context"
const toolsUri = "superpi://workspace/tools"

/** How long listings may be kept, in ms: they change with the program only. */
const listTtlMs = 60_000

const instructions =
  "Tools act in the workspace of the server and go through its permissions; a call that is refused says why. " +
  "harness_task hands a whole task to an agent, which works in a conversation of its own."

/** The harness that direct calls go to; undefined where the node has none. */
const harnessOf = ({ default: fallback, harnesses }: HarnessListing, asked: string | null) =>
  harnesses.find(({ id }) => id === (asked ?? fallback))

/** The tools that a client may call: those of the harness; without one, what the node has. */
const offered = (tools: ReadonlyArray<ServedTool>, listing: HarnessListing, asked: string | null) => {
  const harness = harnessOf(listing, asked)
  const has = new Set((harness === undefined ? listing.harnesses : [harness]).flatMap((one) => one.tools))
  return tools.filter(({ spec }) => has.has(spec.name))
}

/** The rules files that a conversation begins with, or null where that is not known before there is one. */
const rulesOf = (
  { cwd, rules }: McpService,
  harness: HarnessCapabilities | undefined,
): Effect.Effect<WorkspaceRules | null> => {
  if (harness?.plugins.includes("rules") !== true) return Effect.succeed({ shown: [], left: [] })
  const root = harness.workspace === "none" ? "" : harness.workspace === "local" ? cwd : null
  return rules === null || root === null ? Effect.succeed(null) : rules(root)
}

/** What names the request among those of its connection, or null. */
const requestOf = (context: ServerContext, { stateless }: Reach): string | null => {
  const { id } = context.mcpReq
  return stateless ? null : `${typeof id}:${id}`
}

const registerTools = (
  server: McpServer,
  connection: Connection,
  answers: Answers,
  reach: Reach,
  tools: ReadonlyArray<ServedTool>,
) => {
  const cancels = () => !connection.leaving
  // In a session over HTTP a message makes the answer a stream: only for who asked. The stateless protocol asks in each request.
  const logs = () => reach.pushes || connection.wantsLogs
  for (const { effects, replay, spec } of tools) {
    const { description, name, parameters } = spec
    const annotations = { title: name, ...hintsOf({ effects, replay }) }
    server.registerTool(name, { description, inputSchema: anyArguments(parameters), annotations }, (args, context) =>
      answers.tool(
        Effect.map(
          connection.calls.call({
            name,
            arguments: args,
            request: requestOf(context, reach),
            say: sayTo(context, logs()),
            cancels,
          }),
          ({ callId, conversationId, isError, output, structured }) => {
            const structuredContent = structuredOf(structured)
            return {
              content: contentOf(output),
              ...(structuredContent === null ? {} : { structuredContent }),
              ...(isError ? { isError } : {}),
              _meta: { "superpi/conversationId": conversationId, "superpi/callId": callId },
            }
          },
        ),
        context.mcpReq.signal,
      ),
    )
  }
  const outputSchema: JsonObject = {
    type: "object",
    properties: {
      harness: { type: ["string", "null"], description: "The harness that worked on it" },
      conversation_id: { type: "integer", description: "The conversation; its transcript is a resource" },
    },
    required: ["harness", "conversation_id"],
  }
  server.registerTool(
    "harness_task",
    {
      title: "harness_task",
      description:
        "Hands a task to an agent, which works on it with its own tools in a conversation of its own, and returns its answer. The harness decides what the agent may do; prompts/list names them.",
      inputSchema: textArguments({
        prompt: { description: "The task, with everything that the agent needs to know", required: true },
        harness: { description: "Id of a harness; default: the server's", required: false },
      }),
      outputSchema: anyArguments(outputSchema),
      annotations: {
        title: "harness_task",
        readOnlyHint: false,
        destructiveHint: true,
        idempotentHint: false,
        openWorldHint: true,
      },
    },
    ({ harness = null, prompt = "" }, context) =>
      answers.tool(
        Effect.map(
          runHarnessTask(connection, {
            prompt,
            harness,
            request: requestOf(context, reach),
            say: sayTo(context, logs()),
            cancels,
          }),
          ({ conversationId, harness: resolved, isError, text }) => ({
            content: [{ type: "text" as const, text }],
            structuredContent: { harness: resolved, conversation_id: conversationId },
            ...(isError ? { isError } : {}),
          }),
        ),
        context.mcpReq.signal,
      ),
  )
}

const promptText = ({ description, id, name }: HarnessCapabilities, goal: string): string =>
  `${goal}\n\nWork on this as ${name} (${description}), or hand it over: call the tool harness_task with the harness "${id}" and everything that it needs to know as the prompt.`

const planText = (goal: string): string =>
  `${goal}\n\nPlan this before anything is changed: read what the question needs, then say what to change, where, in which order, how each step is verified, and what could go wrong. The harness "super-pi-planner" of the tool harness_task does exactly that and cannot write.`

const registerPrompts = (server: McpServer, { harnesses }: HarnessListing) => {
  const argsSchema = textArguments({ goal: { description: "What is to be reached", required: true } })
  const add = (name: string, title: string, description: string, text: (goal: string) => string) =>
    server.registerPrompt(name, { title, description, argsSchema }, ({ goal = "" }) => ({
      description,
      messages: [{ role: "user" as const, content: { type: "text" as const, text: text(goal) } }],
    }))
  for (const harness of harnesses) {
    add(harness.id, harness.name, harness.description, (goal) => promptText(harness, goal))
  }
  add("plan_architecture", "Plan", "Read-only analysis that ends in a plan", planText)
}

const registerResources = (
  server: McpServer,
  connection: Connection,
  answers: Answers,
  listing: HarnessListing,
  tools: ReadonlyArray<ServedTool>,
) => {
  const { cwd, service } = connection.served
  const { sessions, version } = service
  const { principal } = connection
  const json = (uri: string, value: unknown) => ({
    contents: [{ uri, mimeType: "application/json", text: JSON.stringify(value, null, 2) }],
  })
  server.registerResource(
    "workspace-context",
    contextUri,
    { title: "Workspace", description: "Where and as what calls are made", mimeType: "application/json" },
    (_, context) => {
      const harness = harnessOf(listing, connection.harness)
      const of = (rules: WorkspaceRules | null) =>
        json(contextUri, {
          version,
          directory: cwd,
          harness: harness?.id ?? connection.harness,
          workspace: harness?.workspace ?? null,
          modes: harness?.modes ?? [],
          plugins: harness?.plugins ?? [],
          rules: rules?.shown ?? null,
          rulesWithoutRoom: rules?.left ?? [],
          harnesses: listing.harnesses.map(({ description, id, name }) => ({ id, name, description })),
        })
      return answers.read(Effect.map(rulesOf(connection.served, harness), of), context.mcpReq.signal)
    },
  )
  server.registerResource(
    "workspace-tools",
    toolsUri,
    { title: "Tools", description: "The tools with their effects", mimeType: "application/json" },
    () => json(toolsUri, { tools: tools.map(({ effects, replay, spec }) => ({ ...spec, effects, replay })) }),
  )
  const mimeType = "application/jsonl"
  const complete = (value: string, context: AbortSignal) =>
    answers.read(
      Effect.map(sessions.list({ principal, limit: 1000 }), (rows) =>
        rows.map(({ conversation_id: id }) => String(id)).filter((id) => id.startsWith(value)),
      ),
      context,
    )
  server.registerResource(
    "conversation-transcript",
    new ResourceTemplate(transcriptTemplate, {
      list: undefined,
      complete: { id: (value) => complete(value, new AbortController().signal) },
    }),
    { title: "Transcript", description: "The entries of a conversation, as lines of JSON", mimeType },
    (uri, { id }, context) => {
      const number = conversationNumber(id)
      if (number === null) throw new ResourceNotFoundError(uri.href)
      const target = { conversationId: ConversationId.make(number), principal }
      return answers.read(
        Effect.map(sessions.transcript(target), (entries) => ({
          contents: [{ uri: uri.href, mimeType, text: transcriptLines(entries) }],
        })),
        context.mcpReq.signal,
        uri.href,
      )
    },
  )
  const fixed = [
    { uri: contextUri, name: "workspace-context", title: "Workspace", mimeType: "application/json" },
    { uri: toolsUri, name: "workspace-tools", title: "Tools", mimeType: "application/json" },
  ]
  // The package lists everything at once; what a client started may be many.
  server.server.setRequestHandler("resources/list", ({ params }) => {
    const transcripts = connection.started().map(({ id, title }) => ({
      uri: transcriptUri(id),
      name: `conversation-${id}`,
      title: title === "" ? `Conversation ${id}` : title,
      mimeType,
    }))
    const all = [...fixed, ...transcripts]
    const from = startOf(params?.cursor)
    const next = from + pageSize
    return { resources: all.slice(from, next), ...(next < all.length ? { nextCursor: String(next) } : {}) }
  })
}

/** Where a page begins. */
const startOf = (cursor: string | undefined): number => {
  if (cursor === undefined) return 0
  if (!/^[1-9]\d{0,8}$/.test(cursor)) {
    const said = JSON.stringify(cursor.slice(0, 60))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `cursor: expected one that a list gave, got ${said}`)
  }
  return Number(cursor)
}

/** Makes a server, not yet connected. */
export const buildServer = (
  connection: Connection,
  listing: HarnessListing,
  answers: Answers,
  reach: Reach,
  further: McpServerOptions = {},
): McpServer => {
  const { service, tools } = connection.served
  const server = new McpServer(
    { name: "super-pi", title: "Super-Pi", version: service.version },
    {
      ...further,
      capabilities: {
        tools: { listChanged: false },
        prompts: { listChanged: false },
        resources: { listChanged: reach.pushes, ...further.capabilities?.resources },
        logging: {},
      },
      instructions,
      cacheHints: {
        "tools/list": { ttlMs: listTtlMs, cacheScope: "private" },
        "prompts/list": { ttlMs: listTtlMs, cacheScope: "private" },
        "resources/templates/list": { ttlMs: listTtlMs, cacheScope: "private" },
        "server/discover": { ttlMs: listTtlMs, cacheScope: "private" },
      },
    },
  )
  const served = offered(tools, listing, connection.harness)
  registerTools(server, connection, answers, reach, served)
  registerPrompts(server, listing)
  registerResources(server, connection, answers, listing, served)
  return server
}
