/**
 * Forks: a conversation that sees another one's entries up to one of them and goes its own way. One commit writes the conversation, its
 * documents and the note of the request, so that a fork is all there or not at all. The other conversation may be busy, and may be a fork
 * itself; nothing of it changes.
 */
import { Clock, Effect, Random, Schema } from "effect"
import { noConversation, orStorageFailure, storageFailure } from "../actors/conversation/failures.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import type { AgentDocument } from "../domain/document.ts"
import { DocumentKind } from "../domain/document.ts"
import type { Entry } from "../domain/entry.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import { ConversationId } from "../domain/ids.ts"
import type { Json } from "../domain/json.ts"
import { isJsonObject } from "../domain/json.ts"
import { uuidDraws, uuidv7 } from "../domain/uuid.ts"
import { builtinWrite } from "../storage/documents/builtin.ts"
import { forkDocuments } from "../storage/documents/fork.ts"
import type { CommitError, ReadError } from "../storage/errors.ts"
import type { DocumentWrite, StoreService } from "../storage/store.ts"
import { newestVisible, visibleEntry } from "./visible.ts"

/** Kind of the global documents that remember which conversation a fork request made. */
const forkRequestKind = "pi.fork-request"

const ForkRequest = Schema.Struct({ conversation: ConversationId })

type ForkPayload = Parameters<SessionsService["fork"]>[0]

export interface ForkParts {
  readonly store: StoreService
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
  readonly checkAgent: (agent: AgentDocument) => Effect.Effect<void, Failure>
  readonly state: (target: Target) => Effect.Effect<SessionState, Failure>
}

export const makeFork = ({ allowed, checkAgent, state, store }: ForkParts): SessionsService["fork"] => {
  const known = (key: string): Effect.Effect<ConversationId | null, ReadError> =>
    Effect.map(store.globalDocument(forkRequestKind, key), (record) => {
      const decoded = Schema.decodeUnknownOption(ForkRequest)(record?.value)
      return decoded._tag === "Some" ? decoded.value.conversation : null
    })

  /** Where the fork branches off: an entry that the conversation sees. */
  const branch = ({ conversationId, entryId }: ForkPayload): Effect.Effect<Entry, Failure> =>
    Effect.flatMap(
      orStorageFailure(
        entryId === null ? newestVisible(store, conversationId) : visibleEntry(store, conversationId, entryId),
      ),
      (entry) =>
        entry !== null
          ? Effect.succeed(entry)
          : Effect.fail(
              new InvalidRequest({
                path: "entryId",
                expected: `an entry that conversation ${conversationId} sees`,
                actual: entryId === null ? "none: it has no entries yet" : String(entryId),
              }),
            ),
    )

  /** What the fork starts with: the documents as of the entry, changed by `agent`, and a provider session of its own. */
  const documents = (
    id: ConversationId,
    payload: ForkPayload,
    entry: Entry,
    now: number,
  ): Effect.Effect<ReadonlyArray<DocumentWrite>, ReadError | CommitError> =>
    Effect.gen(function* () {
      const from = { conversation: payload.conversationId, entry }
      const copied = yield* forkDocuments(store, from, id)
      const [agentId, providerId] = yield* store.mint("document", 2)
      if (agentId === undefined || providerId === undefined) {
        return yield* Effect.dieMessage("the store minted fewer ids than asked for")
      }
      const isAgent = (one: DocumentWrite) => one.kind === DocumentKind.agent && one.key === ""
      const inherited = copied.find(isAgent)?.value
      const agent = { ...(isJsonObject(inherited) ? inherited : {}), ...payload.agent } as Json
      const digits = yield* Effect.replicateEffect(Random.next, uuidDraws)
      const sessionId = uuidv7(now, () => digits.pop() ?? 0)
      return [
        ...copied.filter((one) => !isAgent(one)),
        builtinWrite(DocumentKind.agent, agentId, id, agent),
        builtinWrite(DocumentKind.provider, providerId, id, { sessionId }),
      ]
    })

  const requestDocument = (id: ConversationId, key: string): Effect.Effect<DocumentWrite, CommitError> =>
    Effect.flatMap(store.mint("document", 1), ([document]) =>
      document === undefined
        ? Effect.dieMessage("the store minted no id")
        : Effect.succeed({
            id: document,
            kind: forkRequestKind,
            scope: "global",
            conversation: null,
            task: null,
            key,
            version: 1,
            history: "latest",
            fork: "initial",
            value: { conversation: id },
          }),
    )

  const create = (
    payload: ForkPayload,
    entry: Entry,
    key: string | null,
  ): Effect.Effect<ConversationId, CommitError | ReadError> =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const [id] = yield* store.mint("conversation", 1)
      if (id === undefined) return yield* Effect.dieMessage("the store minted no id")
      const { conversationId, principal = "local", title } = payload
      yield* store.commit({
        conversations: [
          {
            id,
            parent: { conversation: conversationId, entry: entry.id },
            owner: null,
            principal,
            title: title ?? (yield* store.conversation(conversationId))?.title ?? null,
            createdAt: now,
            updatedAt: now,
          },
        ],
        documents: [
          ...(yield* documents(id, payload, entry, now)),
          ...(key === null ? [] : [yield* requestDocument(id, key)]),
        ],
      })
      return id
    })

  return (payload) =>
    Effect.gen(function* () {
      const { agent, conversationId, principal, requestId } = payload
      const as = principal === undefined ? {} : { principal }
      yield* allowed({ conversationId, ...as })
      yield* checkAgent(agent)
      const key = requestId === null ? null : `${conversationId}:${requestId}`
      const before = key === null ? null : yield* orStorageFailure(known(key))
      if (before !== null) return yield* state({ conversationId: before, ...as })
      const entry = yield* branch(payload)
      const id = yield* create(payload, entry, key).pipe(
        Effect.catchAll((error) =>
          Effect.gen(function* () {
            // Two forks with one request id raced, or the conversation was removed meanwhile.
            const winner = error._tag === "Conflict" && key !== null ? yield* orStorageFailure(known(key)) : null
            if (winner !== null) return winner
            const there = yield* orStorageFailure(store.conversation(conversationId))
            return yield* there === null
              ? Effect.fail<Failure>(noConversation(conversationId))
              : Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure))
          }),
        ),
      )
      return yield* state({ conversationId: id, ...as })
    })
}
