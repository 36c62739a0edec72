/**
 * From a request to the conversation that it is for: found by its id, by the client's name, or created, and set up as the request asks.
 *
 * 1. A conversation of a name is created with its name in one commit. It is seeded by the first request that finds it empty, under a fixed
 *    request id: a death in between leaves it empty, and the request after it seeds.
 * 2. A request without a name makes a conversation of its own; with an idempotency key, the same one each time.
 * 3. What a request chooses (model, mode, form) is set where it differs from what the conversation has.
 */
import { Effect } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { AgentDocument } from "../../domain/document.ts"
import type { SessionState } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import { InvalidRequest } from "../../domain/failure.ts"
import { ConversationId, type EntryId } from "../../domain/ids.ts"
import type { HttpHeaders } from "../http/route.ts"
import { remoteAgent } from "../remote.ts"
import type { ProtocolService } from "../service.ts"
import { reading } from "./fields.ts"
import { chosenBy } from "./models.ts"
import { wrong } from "./problems.ts"
import type { Asked } from "./request.ts"

/** The request id under which a history is written. */
const seedRequest = "openai:seed"
/** The kind of the entry that a history is. */
const historyKind = "openai.history"

export interface Room {
  readonly target: Target
  readonly state: SessionState
  readonly created: boolean
  /** Named in the headers of the answer. */
  readonly headers: HttpHeaders
}

/** What a request chooses, as the agent document says it. */
const agentOf = (service: ProtocolService, asked: Asked): Effect.Effect<AgentDocument, Failure> =>
  Effect.map(service.sessions.harnesses, (listing) => ({
    ...chosenBy(asked.model, listing),
    ...(asked.mode === null ? {} : { mode: asked.mode }),
  }))

/** A bad schema is told before anything is created. */
const checkSchema = ({ checkOf }: ProtocolService, { schema, schemaParam }: Asked): Effect.Effect<void, Failure> =>
  schema === null || checkOf === undefined
    ? Effect.void
    : Effect.mapError(
        Effect.asVoid(checkOf(schema)),
        ({ actual, expected }) => new InvalidRequest({ path: schemaParam, expected, actual }),
      )

/** Seeds an empty conversation with what the client says came before. */
const seed = (sessions: SessionsService, target: Target, asked: Asked): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const model = yield* reading(asked.history)
    if (model.length === 0) return
    yield* sessions.write({ ...target, kind: historyKind, model, requestId: seedRequest })
  })

const isEmpty = ({ entries, queued, turn_id }: SessionState): boolean =>
  entries === 0 && queued.length === 0 && turn_id === null

/** Opens what the request names. Fails before anything is created where the request is wrong. */
const openFor = (
  service: ProtocolService,
  asked: Asked,
  principal: string,
): Effect.Effect<Omit<Room, "headers">, Failure> =>
  Effect.gen(function* () {
    const { sessions } = service
    const { conversation, session } = asked.place
    const opening = Effect.gen(function* () {
      const chosen = yield* agentOf(service, asked)
      const own: AgentDocument = {
        ...chosen,
        ...(asked.instructions === null ? {} : { instructions: asked.instructions }),
        ...(asked.schema === null ? {} : { outputSchema: asked.schema }),
        ...(asked.aside ? { tools: [] } : {}),
      }
      yield* checkSchema(service, asked)
      return yield* remoteAgent(own, service.remote, true)
    })
    if (conversation !== null) {
      const target = { conversationId: ConversationId.make(conversation), principal }
      return { target, state: yield* sessions.state(target), created: false }
    }
    const agent = yield* opening
    if (session !== null) {
      const name = { namespace: "openai", name: session, principal } as const
      const { created, session: state } = yield* sessions.openNamed({ ...name, agent, title: null })
      return { target: { conversationId: state.conversation_id, principal }, state, created }
    }
    const requestId = asked.key === null ? null : `openai:${asked.key}`
    const state = yield* sessions.open({ conversationId: null, agent, title: null, requestId, principal })
    return { target: { conversationId: state.conversation_id, principal }, state, created: true }
  })

/** Images go to models that see them; of a model that is not listed it is not known, so it gets them. */
const checkImages = (service: ProtocolService, { content }: Asked, model: string): Effect.Effect<void, Failure> => {
  if (!content.some((part) => part.type === "image")) return Effect.void
  return Effect.flatMap(service.models, (listed) => {
    const known = listed.find((one) => one.id === model) ?? listed.find((one) => one.name === model)
    return known === undefined || known.images
      ? Effect.void
      : Effect.fail(wrong("messages", `text only, since the model ${known.id} takes no images`, "an image"))
  })
}

const sameModel = (state: SessionState, model: string): boolean =>
  state.model === model || state.model.endsWith(`/${model}`)

/** What a conversation has to be set to for a request; empty where it is that already. */
const changesFor = (
  service: ProtocolService,
  asked: Asked,
  state: SessionState,
): Effect.Effect<AgentDocument, Failure> =>
  Effect.gen(function* () {
    const { harness, mode, model } = yield* agentOf(service, asked)
    const changed: AgentDocument = {
      ...(harness === undefined || harness === state.harness ? {} : { harness }),
      ...(model === undefined || sameModel(state, model) ? {} : { model }),
      ...(mode === undefined ? {} : { mode }),
      ...(asked.instructsEach && asked.instructions !== null ? { instructions: asked.instructions } : {}),
      ...(asked.schema !== null
        ? { outputSchema: asked.schema }
        : state.structured === true
          ? { outputSchema: null }
          : {}),
    }
    const agent = yield* remoteAgent(changed, service.remote, false)
    if (agent.mode !== state.mode) return agent
    const { mode: _, ...others } = agent
    return others
  })

/** Sets a conversation up for the turn of a request. To be called alone on the conversation. */
export const prepare = (service: ProtocolService, asked: Asked, target: Target): Effect.Effect<void, Failure> =>
  Effect.gen(function* () {
    const state = yield* service.sessions.state(target)
    const agent = yield* changesFor(service, asked, state)
    if (Object.keys(agent).length > 0) yield* service.sessions.configure({ ...target, agent })
  })

/** A conversation that is there, for a request that goes on in it. */
export const roomOf = (service: ProtocolService, asked: Asked, target: Target): Effect.Effect<Room, Failure> =>
  Effect.gen(function* () {
    const state = yield* service.sessions.state(target)
    yield* checkImages(service, asked, state.model)
    return { target, state, created: false, headers: idHeader(target) }
  })

/** A fork behind an entry, for a request that goes another way from there. */
export const forked = (
  service: ProtocolService,
  asked: Asked,
  from: Target,
  entryId: EntryId,
): Effect.Effect<Room, Failure> =>
  Effect.gen(function* () {
    const { principal = "local" } = from
    const requestId = asked.key === null ? null : `openai:${asked.key}`
    const fork = { ...from, entryId, agent: {}, title: null, requestId }
    const { conversation_id: conversationId } = yield* service.sessions.fork(fork)
    return yield* roomOf(service, asked, { conversationId, principal })
  })

const idHeader = ({ conversationId }: Target): HttpHeaders => ({ "x-conversation-id": String(conversationId) })

/** The conversation of a request, seeded. What it cannot have is told here, while the answer can still be a status. */
export const enter = (service: ProtocolService, asked: Asked, principal: string): Effect.Effect<Room, Failure> =>
  Effect.gen(function* () {
    const { sessions } = service
    const { created, state, target } = yield* openFor(service, asked, principal)
    yield* checkImages(service, asked, state.model)
    if (isEmpty(state)) yield* seed(sessions, target, asked)
    const { session } = asked.place
    const headers = {
      ...idHeader(target),
      // A header carries visible ASCII only; any other name is known to the client anyway.
      ...(session !== null && asked.place.conversation === null && /^[\x21-\x7e]+$/.test(session)
        ? { "x-session-id": session }
        : {}),
    }
    return { target, state, created, headers }
  })

/** Whether a turn of the request needs something set first that may be refused. */
export const needsChange = (service: ProtocolService, asked: Asked, { created, state }: Room) =>
  created
    ? Effect.succeed(false)
    : Effect.map(changesFor(service, asked, state), (agent) => Object.keys(agent).length > 0)
