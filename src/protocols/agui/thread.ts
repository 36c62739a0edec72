/**
 * Threads: the conversations of front ends by the ids that they give to them (names in the namespace `agui`).
 */
import { Effect } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { AgentDocument } from "../../domain/document.ts"
import type { SessionState } from "../../domain/event.ts"
import { type Failure, NotFound } from "../../domain/failure.ts"
import { ConversationId } from "../../domain/ids.ts"
import { type RemoteRules, remoteAgent } from "../remote.ts"

const namespace = "agui" as const

/** The conversation of a thread or, by its number, any other of the caller's. */
export const findThread = (
  sessions: SessionsService,
  id: string,
  principal: string,
): Effect.Effect<Required<Target>, Failure> =>
  sessions.findNamed({ namespace, name: id, principal }).pipe(
    Effect.map(({ conversation_id }) => ({ conversationId: conversation_id, principal })),
    Effect.catchIf(
      (failure) => failure._tag === "NotFound" || failure._tag === "InvalidRequest",
      () => {
        const number = /^[1-9]\d{0,14}$/.test(id) ? ConversationId.make(Number(id)) : null
        if (number === null) return Effect.fail(new NotFound({ what: `session ${JSON.stringify(id.slice(0, 80))}` }))
        return Effect.map(sessions.state({ conversationId: number, principal }), () => ({
          conversationId: number,
          principal,
        }))
      },
    ),
  )

/** What of the choices differs from what the conversation has. */
const changed = (agent: AgentDocument, session: SessionState): AgentDocument => ({
  ...(agent.harness === undefined || agent.harness === session.harness ? {} : { harness: agent.harness }),
  ...(agent.model === undefined || agent.model === session.model ? {} : { model: agent.model }),
  ...(agent.mode === undefined || agent.mode === session.mode ? {} : { mode: agent.mode }),
})

/** The conversation of a thread, created where there is none, with the choices of a remote caller. */
export const openThread = (
  sessions: SessionsService,
  remote: RemoteRules,
  thread: { readonly id: string; readonly principal: string; readonly agent: AgentDocument },
): Effect.Effect<Required<Target>, Failure> =>
  Effect.gen(function* () {
    const { principal } = thread
    const agent = yield* remoteAgent(thread.agent, remote, true)
    const opened = yield* sessions.openNamed({ namespace, name: thread.id, agent, title: null, principal })
    const conversationId = opened.session.conversation_id
    if (!opened.created) {
      const change = changed(yield* remoteAgent(thread.agent, remote, false), opened.session)
      if (Object.keys(change).length > 0) yield* sessions.configure({ conversationId, principal, agent: change })
    }
    return { conversationId, principal }
  })
