/**
 * How conversations come to be: the row, its agent and its provider session are one commit, together with what remembers who asked for it
 * (an open request's id, a client's name), so that it is created once and never without that.
 */
import { Clock, Effect, Random, Schema } from "effect"
import { orStorageFailure, storageFailure } from "../actors/conversation/failures.ts"
import type { SessionsService } from "../actors/sessions.ts"
import { type AgentDocument, DocumentKind } from "../domain/document.ts"
import type { Failure } from "../domain/failure.ts"
import { ConversationId } from "../domain/ids.ts"
import type { Json } from "../domain/json.ts"
import { uuidDraws, uuidv7 } from "../domain/uuid.ts"
import type { HarnessesService } from "../harness/registry.ts"
import { builtinWrite } from "../storage/documents/builtin.ts"
import type { CommitError } from "../storage/errors.ts"
import type { Commit, StoreService } from "../storage/store.ts"
import { withFallback } from "./sessions-harnesses.ts"

/** Kind of the global documents that remember which conversation an open request made. */
const openRequestKind = "pi.open-request"

const OpenRequest = Schema.Struct({ conversation: ConversationId })

export interface CreationParts {
  readonly store: StoreService
  readonly harnesses: HarnessesService | null
}

/** A conversation to be. */
export interface NewConversation {
  readonly principal: string
  readonly agent: AgentDocument
  readonly title: string | null
}

/** Commits a new conversation; `along` says what else is in its commit. */
export const createConversation = (
  { harnesses, store }: CreationParts,
  { agent, principal, title }: NewConversation,
  along: (id: ConversationId, now: number) => Effect.Effect<Commit, CommitError>,
): Effect.Effect<ConversationId, CommitError> =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    const [id] = yield* store.mint("conversation", 1)
    const [agentId, providerId] = yield* store.mint("document", 2)
    if (id === undefined || agentId === undefined || providerId === undefined) {
      return yield* Effect.dieMessage("the store minted fewer ids than asked for")
    }
    const digits = yield* Effect.replicateEffect(Random.next, uuidDraws)
    const sessionId = uuidv7(now, () => digits.pop() ?? 0)
    const { documents = [], ...rest } = yield* along(id, now)
    yield* store.commit({
      ...rest,
      conversations: [{ id, parent: null, owner: null, principal, title, createdAt: now, updatedAt: now }],
      documents: [
        builtinWrite(DocumentKind.agent, agentId, id, { ...withFallback(harnesses, agent) } as Json),
        builtinWrite(DocumentKind.provider, providerId, id, { sessionId }),
        ...documents,
      ],
    })
    return id
  })

/** Two callers raced for one request or name: `known` says whose conversation it is; any other failure stays. */
export const orWinner = <A>(
  write: Effect.Effect<A, CommitError>,
  known: Effect.Effect<A | null, Failure>,
): Effect.Effect<A, Failure> =>
  Effect.catchAll(write, (error) =>
    Effect.gen(function* () {
      const winner = error._tag === "Conflict" ? yield* known : null
      return winner ?? (yield* Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure)))
    }),
  )

/** Creates the conversation of an open request, or answers the one that it made before. */
export const makeOpening = (parts: CreationParts) => {
  const { store } = parts

  const known = (key: string): Effect.Effect<ConversationId | null, Failure> =>
    Effect.map(orStorageFailure(store.globalDocument(openRequestKind, key)), (record) => {
      if (record === null) return null
      const decoded = Schema.decodeUnknownOption(OpenRequest)(record.value)
      return decoded._tag === "Some" ? decoded.value.conversation : null
    })

  return (payload: Parameters<SessionsService["open"]>[0]): Effect.Effect<ConversationId, Failure> =>
    Effect.gen(function* () {
      const { agent, principal = "local", requestId, title } = payload
      const key = requestId === null ? null : `${principal}:${requestId}`
      const before = key === null ? null : yield* known(key)
      if (before !== null) return before
      const write = createConversation(parts, { principal, agent, title }, (conversation) =>
        Effect.gen(function* () {
          if (key === null) return {}
          const [id] = yield* store.mint("document", 1)
          if (id === undefined) return yield* Effect.dieMessage("the store minted fewer ids than asked for")
          const remembered = {
            id,
            kind: openRequestKind,
            scope: "global" as const,
            conversation: null,
            task: null,
            key,
            version: 1,
            history: "latest" as const,
            fork: "initial" as const,
            value: { conversation },
          }
          return { documents: [remembered] }
        }),
      )
      return yield* orWinner(write, key === null ? Effect.succeed(null) : known(key))
    })
}
