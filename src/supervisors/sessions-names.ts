/**
 * Conversations by the names that clients gave them, as the session contract has them; rules are in `domain/session-name.ts`.
 */
import { Clock, Effect } from "effect"
import { orStorageFailure } from "../actors/conversation/failures.ts"
import type { NameTarget, SessionsService, Target } from "../actors/sessions.ts"
import { type AgentDocument, DocumentKind } from "../domain/document.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, InvalidRequest, NotFound } from "../domain/failure.ts"
import type { ConversationId } from "../domain/ids.ts"
import { isRecord } from "../domain/json.ts"
import type { NamedSession } from "../domain/session-name.ts"
import type { ListedName, NameChange, NameKey } from "../storage/name-port.ts"
import { type CreationParts, createConversation, orWinner } from "./sessions-create.ts"

const hourMs = 3_600_000
/** How long a name lives that nobody uses, in ms: 90 days. */
const nameTtlMs = 90 * 24 * hourMs
/** How many names a database keeps. */
const nameLimit = 100_000
/** Characters of a name. */
const longest = 256

export interface NameParts extends CreationParts {
  /** Fails with `NotFound` for a conversation that is not there or not the caller's. */
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
  readonly checkAgent: (agent: AgentDocument) => Effect.Effect<void, Failure>
  readonly state: (target: Target) => Effect.Effect<SessionState, Failure>
}

const keyOf = ({ name, namespace, principal = "local" }: NameTarget): NameKey => ({ namespace, principal, name })

const checkName = (name: string): Effect.Effect<void, Failure> =>
  name.length >= 1 && name.length <= longest
    ? Effect.void
    : Effect.fail(
        new InvalidRequest({
          path: "name",
          expected: `1 to ${longest} characters`,
          actual: name === "" ? "an empty text" : `${name.length} characters`,
        }),
      )

export const makeNames = (
  parts: NameParts,
): Pick<SessionsService, "openNamed" | "setName" | "findNamed" | "listNamed"> => {
  const { allowed, checkAgent, state, store } = parts
  let pruned = Number.NEGATIVE_INFINITY

  const find = (key: NameKey): Effect.Effect<ListedName | null, Failure> => orStorageFailure(store.name(key))

  /** What forgets old names, in the commit of a new one: at most once an hour. */
  const pruning = (now: number): ReadonlyArray<NameChange> => {
    if (now - pruned < hourMs) return []
    pruned = now
    return [{ type: "prune", before: now - nameTtlMs, keep: nameLimit }]
  }

  const giving = (
    key: NameKey,
    conversation: ConversationId,
    now: number,
    moves: boolean,
  ): ReadonlyArray<NameChange> => [{ type: "give", conversation, at: now, moves, ...key }, ...pruning(now)]

  const touch = ({ record }: ListedName): Effect.Effect<void, Failure> =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      if (now - record.usedAt < hourMs) return Effect.void
      const { name, namespace, principal } = record
      return orStorageFailure(store.commit({ names: [{ type: "use", namespace, principal, name, at: now }] }))
    })

  const view = ({ record, title, updatedAt }: ListedName): Effect.Effect<NamedSession, Failure> =>
    Effect.map(
      orStorageFailure(
        store.findDocument({
          scope: "conversation",
          kind: DocumentKind.agent,
          conversation: record.conversation,
          task: null,
          key: "",
        }),
      ),
      (document) => {
        const agent = document?.value
        const cwd = isRecord(agent) && typeof agent.cwd === "string" ? agent.cwd : null
        const { conversation, createdAt, name } = record
        return { name, conversation_id: conversation, title, cwd, created_at: createdAt, updated_at: updatedAt }
      },
    )

  return {
    openNamed: ({ agent, title, ...target }) =>
      Effect.gen(function* () {
        yield* checkName(target.name)
        const key = keyOf(target)
        const { principal } = key
        const before = yield* find(key)
        if (before !== null) {
          yield* touch(before)
          return { session: yield* state({ conversationId: before.record.conversation, principal }), created: false }
        }
        yield* checkAgent(agent)
        const write = createConversation(parts, { principal, agent, title }, (id, now) =>
          Effect.succeed({ names: giving(key, id, now, false) }),
        )
        const { created, id } = yield* orWinner(
          Effect.map(write, (id) => ({ id, created: true })),
          Effect.map(find(key), (one) => (one === null ? null : { id: one.record.conversation, created: false })),
        )
        return { session: yield* state({ conversationId: id, principal }), created }
      }),
    setName: ({ conversationId, ...target }) =>
      Effect.gen(function* () {
        yield* checkName(target.name)
        const key = keyOf(target)
        if (conversationId === null) {
          const named = (yield* find(key)) !== null
          if (named) yield* orStorageFailure(store.commit({ names: [{ type: "take", ...key }] }))
          return { named: false }
        }
        yield* allowed({ conversationId, principal: key.principal })
        const now = yield* Clock.currentTimeMillis
        yield* orStorageFailure(store.commit({ names: giving(key, conversationId, now, true) }))
        return { named: true }
      }),
    findNamed: (target) =>
      Effect.gen(function* () {
        const found = yield* find(keyOf(target))
        if (found === null) return yield* new NotFound({ what: `session ${JSON.stringify(target.name.slice(0, 80))}` })
        yield* touch(found)
        return yield* view(found)
      }),
    listNamed: ({ before, limit = 100, namespace, principal = "local" }) =>
      Effect.flatMap(
        orStorageFailure(
          store.names({ namespace, principal, limit, ...(before === undefined || before === null ? {} : { before }) }),
        ),
        (rows) => Effect.forEach(rows, view),
      ),
  }
}
