/**
 * Reads what a conversation's actor starts from. A damaged document, or one of a newer version of the code, is a typed error that names
 * it; nothing is changed.
 */
import { Effect, Either } from "effect"
import {
  agentDocument,
  liveDocument,
  providerDocument,
  todoDocument,
  usageDocument,
} from "../../domain/builtin-documents.ts"
import { contextState } from "../../domain/context.ts"
import { type DocumentDefinition, decodeDocument } from "../../domain/document-definition.ts"
import { EntryKind } from "../../domain/entry.ts"
import type { ConversationId, DocumentId } from "../../domain/ids.ts"
import { type McpServer, mcpDocument } from "../../domain/mcp.ts"
import { type NewerDocument, storedFault } from "../../storage/documents/errors.ts"
import type { CorruptRow, ReadError } from "../../storage/errors.ts"
import type { StoreService } from "../../storage/store.ts"
import type { Data, Stored } from "./machine/data.ts"

/** Everything of one conversation that its machine needs, and what was open when it last ran. */
export interface Loaded {
  readonly data: Data
  readonly stored: Stored
  /** The provider-facing session id. */
  readonly sessionId: string
  /** MCP servers that were handed over to it. */
  readonly mcpServers: ReadonlyArray<McpServer>
}

/** Null when there is no such conversation. */
export const load = (
  store: StoreService,
  id: ConversationId,
): Effect.Effect<Loaded | null, ReadError | NewerDocument> =>
  Effect.gen(function* () {
    const conversation = yield* store.conversation(id)
    if (conversation === null) return null
    const documents = yield* store.documents(id)
    const entries = yield* store.contextEntries(id)
    const tasks = yield* store.openTasks(id)
    const submissions = yield* store.openSubmissions(id)
    const decoded = <A, I>(
      definition: DocumentDefinition<A, I>,
    ): Effect.Effect<A | null, CorruptRow | NewerDocument> => {
      const record = documents.find((document) => document.kind === definition.kind && document.key === "")
      if (record === undefined) return Effect.succeed(null)
      const value = decodeDocument(definition, record.version, record.value)
      return Either.isRight(value)
        ? Effect.succeed(value.right)
        : Effect.fail(storedFault(store.location, record, definition.version, value.left))
    }
    const agent = yield* decoded(agentDocument)
    const usage = yield* decoded(usageDocument)
    const live = yield* decoded(liveDocument)
    const provider = yield* decoded(providerDocument)
    const mcp = yield* decoded(mcpDocument)
    // Only shown: a list that cannot be read keeps no conversation from starting.
    const todo = yield* Effect.option(decoded(todoDocument))
    const ids: Record<string, DocumentId> = {}
    for (const document of documents) if (document.key === "") ids[document.kind] = document.id
    const batch = entries.findLast((entry) => entry.kind === EntryKind.assistant) ?? null
    const results = new Set<string>()
    for (const entry of entries)
      for (const message of entry.model) if (message.role === "tool") results.add(message.callId)
    return {
      data: {
        state: "recovering",
        conversation,
        agent: agent ?? agentDocument.initial(),
        documents: ids,
        written: {},
        usage: usage ?? usageDocument.initial(),
        context: contextState(entries),
        // Without a head the context is the whole transcript.
        entryCount: entries.some(({ head }) => head !== null) ? yield* store.entryCount(id) : entries.length,
        queue: [],
        run: null,
        parked: null,
        cancels: [],
        compactions: [],
        compactionFailure: live?.compactionFailure ?? null,
        questions: [],
        ...(todo._tag === "Some" && todo.value !== null ? { plan: todo.value.items } : {}),
      },
      stored: { tasks, submissions, live, results, batch },
      sessionId: provider?.sessionId ?? `conversation-${id}`,
      mcpServers: mcp?.servers ?? [],
    }
  })
