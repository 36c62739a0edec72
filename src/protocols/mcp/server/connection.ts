/**
 * What one client's requests share: whose they are, the harness of its direct calls, and the conversations that it started. On stdio it
 * lives as long as the process, over HTTP as long as the session; requests of the stateless protocol share one per principal.
 */
import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import { directModel } from "../../../domain/direct-call.ts"
import type { AgentDocument, ExecutionMode } from "../../../domain/document.ts"
import type { SessionState } from "../../../domain/event.ts"
import type { Failure } from "../../../domain/failure.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import type { ToolSpec } from "../../../domain/message.ts"
import type { ToolEffect } from "../../../domain/permissions.ts"
import { lower } from "../../../domain/permissions-policy.ts"
import { type RemoteRules, remoteAgent } from "../../remote.ts"
import type { ProtocolService } from "../../service.ts"
import { type DirectCalls, makeDirectCalls } from "./direct.ts"

/** A tool that clients may call directly, where the harness offers it. */
export interface ServedTool {
  readonly spec: ToolSpec
  readonly effects: ReadonlyArray<ToolEffect>
  readonly replay: "safe" | "unsafe"
}

/** The rules files that a prompt has room for, the nearest first. */
export interface WorkspaceRules {
  readonly shown: ReadonlyArray<{ readonly path: string; readonly text: string; readonly cut: boolean }>
  /** Paths of those without room. */
  readonly left: ReadonlyArray<string>
}

/** What the MCP server serves. */
export interface McpService {
  readonly service: ProtocolService
  readonly tools: ReadonlyArray<ServedTool>
  /** The harness of direct calls where a client names none; null: the node's default. */
  readonly harness: string | null
  /** Absolute path: the workspace of the conversations that clients start; null: the node's. */
  readonly cwd: string | null
  /** Older and short names of harnesses. */
  readonly aliases: Readonly<Record<string, string>>
  /** Rules of a workspace with that root, which is empty where there are no files; null: the server does not know where they are. */
  readonly rules: ((root: string) => Effect.Effect<WorkspaceRules>) | null
}

/** A conversation that a client started. */
export interface StartedConversation {
  readonly id: ConversationId
  readonly title: string
}

export interface Connection {
  readonly served: McpService
  readonly principal: string
  /** Unique among those of all nodes. */
  readonly key: string
  /** The harness of direct calls, as it was asked for, or its id once that is known; null: the node's default. */
  harness: string | null
  /** Fails where there is no such harness. */
  readonly check: (listed: ReadonlyArray<string>) => Effect.Effect<void, Failure>
  readonly calls: DirectCalls
  /** Opens a conversation on behalf of the client. The same `requestId` again gives the same one. */
  readonly open: (agent: AgentDocument, title: string, requestId: string | null) => Effect.Effect<SessionState, Failure>
  /** The newest of those that the client started, oldest first. */
  readonly started: () => ReadonlyArray<StartedConversation>
  /** Is told when the client started one. */
  onStarted: () => void
  /** Whether the client asked for log messages. */
  wantsLogs: boolean
  /** The server stops: what is at work goes on at its next start. */
  leaving: boolean
}

/** Conversations that are remembered of one client. */
const maxStarted = 1_000

/** The modes of MCP clients: `accept-edits` where the settings say nothing, and never above the node's own. */
const mcpRules = ({ ownMode, remoteDefaultMode, remoteMaxMode }: RemoteRules): RemoteRules => {
  const highest = remoteMaxMode ?? lower(ownMode, remoteDefaultMode ?? "accept-edits")
  const first = remoteDefaultMode ?? lower(ownMode, lower(highest, "accept-edits"))
  return { ownMode, remoteDefaultMode: first, remoteMaxMode: highest }
}

export const makeConnection = (
  served: McpService,
  options: {
    readonly principal: string
    readonly harness: string | null
    /** The mode that the client asks for; it only ever tightens. */
    readonly mode?: ExecutionMode | undefined
  },
): Connection => {
  const { mode, principal } = options
  const { cwd, service } = served
  const key = randomUUID()
  const asked = options.harness ?? served.harness
  /** A conversation for direct calls that none was made in yet. */
  let spare: ConversationId | null = null
  const started: Array<StartedConversation> = []

  const open: Connection["open"] = (agent, title, requestId) =>
    Effect.gen(function* () {
      const wished: AgentDocument = {
        ...agent,
        ...(mode === undefined ? {} : { mode }),
        ...(cwd === null ? {} : { cwd }),
      }
      const { model, ...others } = wished
      const chosen = yield* remoteAgent(others, mcpRules(service.remote), true)
      const state = yield* service.sessions.open({
        conversationId: null,
        agent: model === undefined ? chosen : { ...chosen, model },
        title,
        requestId,
        principal,
      })
      if (started.some(({ id }) => id === state.conversation_id)) return state
      if (started.length >= maxStarted) started.shift()
      started.push({ id: state.conversation_id, title })
      connection.onStarted()
      return state
    })

  const openDirect = Effect.suspend(() => {
    const { harness } = connection
    return open({ model: directModel, ...(harness === null ? {} : { harness }) }, "Direct calls over MCP", null)
  })

  const connection: Connection = {
    served,
    principal,
    key,
    harness: asked === null ? null : (served.aliases[asked] ?? asked),
    // An older name of a harness is not listed: what it stands for is known from a conversation that has it.
    check: (listed) =>
      connection.harness === null || listed.includes(connection.harness)
        ? Effect.void
        : Effect.map(openDirect, (state) => {
            spare = state.conversation_id
            connection.harness = state.harness
          }),
    calls: makeDirectCalls({
      sessions: service.sessions,
      principal,
      connection: key,
      open: Effect.suspend(() => {
        const found = spare
        spare = null
        return found === null ? Effect.map(openDirect, (state) => state.conversation_id) : Effect.succeed(found)
      }),
    }),
    open,
    started: () => started,
    onStarted: () => {},
    wantsLogs: false,
    leaving: false,
  }
  return connection
}
