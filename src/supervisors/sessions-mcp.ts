/**
 * MCP servers, as the session contract has them. The servers of a conversation are its document `pi.mcp`: written first, started then.
 */
import { Effect } from "effect"
import { castDraft } from "immer"
import { newReference, storageFailure } from "../actors/conversation/failures.ts"
import type { McpServersService } from "../actors/mcp/servers.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, Refused, ServiceFailure } from "../domain/failure.ts"
import { mcpDocument } from "../domain/mcp.ts"
import { serversFault } from "../domain/mcp-check.ts"
import { makeDocuments } from "../storage/documents/documents.ts"
import type { StoreService } from "../storage/store.ts"

interface McpParts {
  readonly store: StoreService
  /** Null: the node uses no MCP servers. */
  readonly mcp: McpServersService | null
  /** Fails with `NotFound` for a conversation that is not there or not the caller's. */
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
  /** Brings the conversation into memory. */
  readonly state: (target: Target) => Effect.Effect<SessionState, Failure>
}

type McpCalls = Pick<SessionsService, "addMcpServers" | "mcpServers" | "restartMcpServer">

const off = new Refused({ rule: "mcpClients", detail: "the settings of this node say that it uses no MCP servers" })

export const makeMcpCalls = ({ allowed, mcp, state, store }: McpParts): McpCalls => {
  const documents = makeDocuments(store)
  const here = (target: Target) =>
    Effect.filterOrFail(
      Effect.as(allowed(target), mcp),
      (service) => service !== null,
      (): Failure => off,
    )
  const targetOf = (conversationId: Target["conversationId"], principal: string | undefined): Target => ({
    conversationId,
    ...(principal === undefined ? {} : { principal }),
  })
  return {
    addMcpServers: ({ replace = false, servers, ...target }) =>
      Effect.gen(function* () {
        const service = yield* here(target)
        const changed = new Set(servers.map(({ name }) => name))
        const kept = (before: typeof servers) => (replace ? [] : before.filter(({ name }) => !changed.has(name)))
        const after = yield* documents.get(mcpDocument, ownerOf(target)).pipe(
          Effect.map((document) => [...kept(document.servers), ...servers]),
          Effect.catchAll(documentFailure),
        )
        const fault = serversFault(servers) ?? serversFault(after)
        if (fault !== null) return yield* fault
        const { servers: stored } = yield* documents
          .update(mcpDocument, ownerOf(target), (document) => {
            document.servers = castDraft([...kept(document.servers), ...servers])
          })
          .pipe(Effect.catchAll(documentFailure))
        const { cwd } = yield* state(target)
        yield* service.tools.enter(target.conversationId, stored, cwd ?? process.cwd())
        return yield* service.list(target.conversationId)
      }),
    mcpServers: ({ conversationId, principal }) =>
      Effect.gen(function* () {
        if (conversationId === null) return mcp === null ? [] : yield* mcp.list(null)
        const target = targetOf(conversationId, principal)
        const service = yield* here(target)
        yield* state(target)
        return yield* service.list(conversationId)
      }),
    restartMcpServer: ({ conversationId, name, principal }) =>
      Effect.gen(function* () {
        if (conversationId !== null) yield* state(targetOf(conversationId, principal))
        return mcp === null ? yield* off : yield* mcp.restart(conversationId, name)
      }),
  }
}

/** The owner of a conversation's document. */
const ownerOf = ({ conversationId }: Target) => ({ conversation: conversationId })

type DocumentError = Effect.Effect.Error<ReturnType<ReturnType<typeof makeDocuments>["update"]>>

const documentFailure = (error: DocumentError): Effect.Effect<never, Failure> => {
  if (error._tag === "InvalidDocument" || error._tag === "NewerDocument") {
    return new ServiceFailure({ code: "document", detail: error.message, reference: newReference() })
  }
  return Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure))
}
