/**
 * Reads what a conversation's actor starts from. A damaged document is a typed error that names it; nothing is changed.
 */
import { Effect, Schema } from "effect"
import { contextState } from "../../domain/context.ts"
import type { DocumentRecord } from "../../domain/document.ts"
import { AgentDocument, DocumentKind, LiveDocument, ProviderDocument, UsageDocument } from "../../domain/document.ts"
import { EntryKind } from "../../domain/entry.ts"
import type { ConversationId, DocumentId } from "../../domain/ids.ts"
import type { ReadError } from "../../storage/errors.ts"
import { CorruptRow } from "../../storage/errors.ts"
import type { StoreService } from "../../storage/store.ts"
import type { Data, Stored } from "./machine/data.ts"

/** Everything of one conversation that its machine needs, and what was open when it last ran. */
export interface Loaded {
  readonly data: Data
  readonly stored: Stored
  /** The provider-facing session id. */
  readonly sessionId: string
}

/** Null when there is no such conversation. */
export const load = (store: StoreService, id: ConversationId): Effect.Effect<Loaded | null, ReadError> =>
  Effect.gen(function* () {
    const conversation = yield* store.conversation(id)
    if (conversation === null) return null
    const documents = yield* store.documents(id)
    const entries = yield* store.contextEntries(id)
    const tasks = yield* store.openTasks(id)
    const submissions = yield* store.openSubmissions(id)
    const decoded = <A, I>(kind: string, schema: Schema.Schema<A, I>): Effect.Effect<A | null, CorruptRow> => {
      const record = documents.find((document) => document.kind === kind && document.key === "")
      return record === undefined ? Effect.succeed(null) : decodeDocument(store.location, record, schema)
    }
    const agent = yield* decoded(DocumentKind.agent, AgentDocument)
    const usage = yield* decoded(DocumentKind.usage, UsageDocument)
    const live = yield* decoded(DocumentKind.live, LiveDocument)
    const provider = yield* decoded(DocumentKind.provider, ProviderDocument)
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
        agent: agent ?? {},
        documents: ids,
        usage: usage ?? { models: {} },
        context: contextState(entries),
        entryCount: entries.length,
        queue: [],
        run: null,
        parked: null,
        cancels: [],
        compactions: [],
        compactionFailure: live?.compactionFailure ?? null,
      },
      stored: { tasks, submissions, live, results, batch },
      sessionId: provider?.sessionId ?? `conversation-${id}`,
    }
  })

const decodeDocument = <A, I>(
  location: string,
  record: DocumentRecord,
  schema: Schema.Schema<A, I>,
): Effect.Effect<A, CorruptRow> =>
  Schema.decodeUnknown(schema)(record.value).pipe(
    Effect.mapError(
      (error) =>
        new CorruptRow({
          location,
          table: "documents",
          row: `${record.id} (${record.kind})`,
          detail: error.message.split("\n").slice(0, 3).join(" "),
        }),
    ),
  )
