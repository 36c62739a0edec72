/**
 * A node with MCP servers in the test's process: scripted models, and the scripted server over stdio.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Layer, Logger, Schedule } from "effect"
import { McpConfig, type McpSettings } from "../../../src/actors/mcp/settings.ts"
import { tokenFiles } from "../../../src/actors/mcp/tokens.ts"
import { Sessions, type SessionsService } from "../../../src/actors/sessions.ts"
import type { AgentDocument } from "../../../src/domain/document.ts"
import type { Entry } from "../../../src/domain/entry.ts"
import type { ConversationId } from "../../../src/domain/ids.ts"
import type { McpServer, McpServerView } from "../../../src/domain/mcp.ts"
import { text } from "../../../src/domain/message.ts"
import { Harnesses } from "../../../src/harness/registry.ts"
import { toolsLayer } from "../../../src/tools/tools.ts"
import { echo, nodeAt } from "../../conversation/harness.ts"

const script = fileURLToPath(new URL("scripted-server.mjs", import.meta.url))

export interface Place {
  readonly directory: string
  /** What the scripted servers were told, in order. */
  readonly notes: () => ReadonlyArray<Readonly<Record<string, unknown>>>
  /** The scripted server under a name. */
  readonly scripted: (name: string, env?: Readonly<Record<string, string>>) => McpServer
}

const placeIn = (directory: string): Place => {
  const file = join(directory, "notes")
  return {
    directory,
    notes: () =>
      existsSync(file)
        ? readFileSync(file, "utf8")
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line))
        : [],
    scripted: (name, env = {}) => ({
      name,
      transport: "stdio",
      command: process.execPath,
      args: [script],
      env: { MCP_NOTES: file, MCP_NAME: name, MCP_ONCE: join(directory, `once-${name}`), ...env },
    }),
  }
}

export interface McpNodeOptions extends Partial<Omit<McpSettings, "servers">> {
  readonly rules?: ReadonlyArray<unknown>
  readonly servers?: ReadonlyArray<McpServer>
}

/** Runs `use` in a fresh directory, which is removed afterwards. */
export const withPlace = <A, E>(use: (place: Place) => Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.acquireUseRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-mcp-"))),
    (directory) => use(placeIn(directory)),
    (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
  )

/** Runs `use` with one life of a node in the place. */
export const withMcpNode = <A, E>(
  { directory }: Place,
  { rules = [], servers = [], ...settings }: McpNodeOptions,
  use: (sessions: SessionsService) => Effect.Effect<A, E>,
) => {
  const config: McpSettings = {
    servers: () => servers.map((server) => ({ server, disabled: false })),
    exposure: "direct",
    startupMs: 50_000,
    callMs: 60_000,
    env: process.env,
    root: directory,
    tokens: tokenFiles(join(directory, "data")),
    version: "0.0.0",
    ...settings,
  }
  const node = nodeAt(join(directory, "test.db"), { rules })
  const places = { configDir: directory, dataDir: directory, discoveryRoots: [], env: {} }
  const harnesses = Layer.provide(Harnesses.layer({ places }), toolsLayer([echo]))
  const around = Layer.merge(Layer.succeed(McpConfig, config), Layer.orDie(harnesses))
  return Effect.flatMap(Sessions, use).pipe(
    Effect.provide(Layer.provide(node, around)),
    Effect.provide(Logger.remove(Logger.defaultLogger)),
  )
}

/** Waits until the server is as `is` wants it. */
export const serverWhen = (
  sessions: SessionsService,
  name: string,
  is: (view: McpServerView) => boolean,
  conversationId: ConversationId | null = null,
) =>
  sessions.mcpServers({ conversationId }).pipe(
    Effect.map((views) => views.find((view) => view.name === name)),
    Effect.filterOrFail(
      (view) => view !== undefined && is(view),
      (view) => new Error(`the server ${name} is ${JSON.stringify(view)}`),
    ),
    Effect.map((view) => view as McpServerView),
    Effect.retry(Schedule.spaced(20).pipe(Schedule.intersect(Schedule.recurs(2500)))),
  )

export const isReady = ({ state }: McpServerView): boolean => state === "ready"

export const openWith = (sessions: SessionsService, agent: AgentDocument = {}) =>
  Effect.map(
    sessions.open({ conversationId: null, agent, title: null, requestId: null }),
    ({ conversation_id }) => conversation_id,
  )

export const ask = (sessions: SessionsService, conversationId: ConversationId, prompt: string) =>
  Effect.flatMap(sessions.submit({ conversationId, content: [text(prompt)], requestId: null }), ({ submission_id }) =>
    sessions.awaitSubmission({ conversationId, submissionId: submission_id }),
  )

/** A script that makes one call and then answers. */
export const callOf = (match: string, tool: string, args: Readonly<Record<string, unknown>> = {}) => ({
  match,
  steps: [{ tools: [{ name: tool, args }] }, { text: "done" }],
})

/** Results of calls in a transcript, in order. */
export const resultsIn = (entries: ReadonlyArray<Entry>) =>
  entries.flatMap((entry) => entry.model.flatMap((message) => (message.role === "tool" ? [message] : [])))

/** The text of a result. */
export const textOf = (result: ReturnType<typeof resultsIn>[number] | undefined): string =>
  (result?.content ?? []).map((part) => (part.type === "text" ? part.text : `[${part.mediaType}]`)).join("\n")

/** Names of the tools that the newest prompt of a conversation offers. */
export const offeredIn = (entries: ReadonlyArray<Entry>): ReadonlyArray<string> => {
  const offered = new Set<string>()
  for (const entry of entries) {
    for (const message of entry.model) {
      if (message.role !== "system") continue
      for (const name of message.removeTools) offered.delete(name)
      for (const { name } of message.addTools) offered.add(name)
    }
  }
  return [...offered]
}
