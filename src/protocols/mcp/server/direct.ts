/**
 * The direct calls of one connection. Its calls go to a conversation of its own, which takes one at a time; what is called at the same time
 * goes to further ones, up to `maxLanes`, and then waits.
 *
 *   lane: unopened → open ⇄ busy; every `callsPerContext` calls it begins a new context, so that no call costs more than the first
 *
 * A call whose request id was seen before is not made again: it is told what the first one came to.
 */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { SessionsService } from "../../../actors/sessions.ts"
import { directInput } from "../../../domain/direct-call.ts"
import type { Failure } from "../../../domain/failure.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import type { JsonObject } from "../../../domain/json.ts"
import { text } from "../../../domain/message.ts"
import { follow, type Outcome, type Say } from "./follow.ts"
import { makeRecentOutputs } from "./recent.ts"
import type { CallResult } from "./renderer.ts"

/** Direct calls of one connection that run at once. */
const maxLanes = 4
const callsPerContext = 50
/** Calls of one connection whose conversation is remembered. */
const maxRemembered = 10_000

export interface DirectCall {
  readonly name: string
  readonly arguments: JsonObject
  /** What the client calls its request, unique among those of the connection; null: nothing is known of it. */
  readonly request: string | null
  readonly say: Say
  readonly cancels: () => boolean
}

export interface DirectCallEnd extends CallResult {
  readonly conversationId: ConversationId
  readonly callId: string
}

export interface DirectCalls {
  readonly call: (call: DirectCall) => Effect.Effect<DirectCallEnd, Failure>
}

export interface DirectCallsParts {
  readonly sessions: SessionsService
  readonly principal: string
  /** Names the connection among all of the node. */
  readonly connection: string
  /** Opens a conversation for direct calls. */
  readonly open: Effect.Effect<ConversationId, Failure>
}

interface Lane {
  conversation: ConversationId | null
  busy: boolean
  /** Since its context began. */
  calls: number
}

const hashOf = (...parts: ReadonlyArray<string>): string =>
  createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32)

const endedWithout = ({ settled }: Extract<Outcome, { readonly type: "settled" }>): CallResult => {
  const why = settled.detail ?? settled.reason ?? "it ended without a result"
  return { output: [text(`The call was not completed: ${why}.`)], structured: null, isError: true }
}

export const makeDirectCalls = (parts: DirectCallsParts): DirectCalls => {
  const { connection, open, principal, sessions } = parts
  const lanes: Array<Lane> = []
  const permits = Effect.unsafeMakeSemaphore(maxLanes)
  /** Where a request went. */
  const seen = new Map<string, ConversationId>()
  const outputs = makeRecentOutputs()
  let counter = 0

  const free = (): Lane => {
    const idle = lanes.find((lane) => !lane.busy)
    const lane = idle ?? { conversation: null, busy: false, calls: 0 }
    if (idle === undefined) lanes.push(lane)
    lane.busy = true
    return lane
  }

  const ready = (lane: Lane): Effect.Effect<ConversationId, Failure> =>
    Effect.gen(function* () {
      const conversationId = lane.conversation ?? (yield* open)
      lane.conversation = conversationId
      if (lane.calls >= callsPerContext) {
        yield* sessions.reset({ conversationId, principal, handoff: null, requestId: null })
        lane.calls = 0
      }
      lane.calls++
      return conversationId
    })

  const remember = (key: string, conversation: ConversationId): void => {
    if (seen.size >= maxRemembered)
      for (const oldest of [...seen.keys()].slice(0, maxRemembered / 10)) seen.delete(oldest)
    seen.set(key, conversation)
  }

  /** A name of the call that is the same for the same request, and no other. */
  const keyOf = ({ arguments: args, name, request }: DirectCall): string =>
    request === null
      ? hashOf(connection, "unnamed", String(++counter))
      : hashOf(connection, request, name, JSON.stringify(args))

  return {
    call: (call) =>
      Effect.suspend(() => {
        const key = keyOf(call)
        const callId = `mcp_${key}`
        const content = [directInput({ id: callId, name: call.name, arguments: call.arguments })]
        const { cancels, say } = call
        const into = (conversationId: ConversationId) =>
          Effect.map(
            follow(sessions, { conversationId, principal, content, requestId: `mcp:${key}`, callId, say, cancels }),
            (outcome): DirectCallEnd => {
              const { isError, output, structured } = outcome.type === "result" ? outcome.result : endedWithout(outcome)
              if (call.request !== null) outputs.keep(key, structured)
              return { conversationId, callId, isError, output, structured: structured ?? outputs.of(key) }
            },
          )
        const before = seen.get(key)
        if (before !== undefined) return into(before)
        const inLane = Effect.acquireUseRelease(
          Effect.sync(free),
          (lane) =>
            Effect.flatMap(ready(lane), (conversationId) => {
              remember(key, conversationId)
              return into(conversationId)
            }),
          (lane) =>
            Effect.sync(() => {
              lane.busy = false
            }),
        )
        return permits.withPermits(1)(inLane)
      }),
  }
}
