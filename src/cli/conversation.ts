/**
 * Which conversation a command talks to: a new one, the most recent one, or a given one.
 */
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { AgentDocument } from "../domain/document.ts"
import type { SessionState } from "../domain/event.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import { ConversationId, EntryId } from "../domain/ids.ts"
import type { Invocation } from "./arguments.ts"
import { agentOf } from "./context.ts"
import { CommandFailure, usageFailure } from "./exit.ts"
import * as option from "./options.ts"

/** `id` null takes a new conversation. */
export interface Choice {
  readonly id: number | null
  readonly latest: boolean
  /** What it is to run with, for a new one and for one that exists. */
  readonly fresh: AgentDocument
  readonly overrides: AgentDocument
}

export const choiceOf = (invocation: Invocation): Choice => {
  const id = invocation.get(option.conversation) ?? null
  const latest = invocation.get(option.continueLatest) === true
  if (latest && id !== null) throw usageFailure("-c and --conversation exclude each other; give one of them")
  return { id, latest, fresh: agentOf(invocation, true), overrides: agentOf(invocation, false) }
}

/** The first line of a prompt, as the title of what begins with it. */
export const titleOf = (prompt: string): string | null => {
  const line = prompt.trim().split("\n", 1)[0]?.trim() ?? ""
  return line === "" ? null : line.length > 80 ? `${line.slice(0, 79)}…` : line
}

export const openConversation = (
  sessions: SessionsService,
  choice: Choice,
  title: string | null,
): Effect.Effect<SessionState, Failure | CommandFailure> =>
  Effect.gen(function* () {
    const latest = choice.latest ? (yield* sessions.list({ limit: 1 }))[0]?.conversation_id : undefined
    if (choice.latest && latest === undefined) {
      return yield* Effect.fail(new CommandFailure("there is no conversation to go on with; start one without -c"))
    }
    const conversationId = latest ?? (choice.id === null ? null : ConversationId.make(choice.id))
    const isNew = conversationId === null
    return yield* sessions.open({
      conversationId,
      agent: isNew ? choice.fresh : choice.overrides,
      title: isNew ? title : null,
      requestId: null,
    })
  })

/** A fork of a conversation, at the entry of that number or, where none is named, at its newest one. */
export const forkConversation = (
  sessions: SessionsService,
  conversationId: ConversationId,
  entry: string,
): Effect.Effect<SessionState, Failure> => {
  const id = /^\d{1,15}$/.test(entry) ? Number(entry) : 0
  if (entry !== "" && id < 1) {
    return new InvalidRequest({
      path: "/fork",
      expected: "an entry number (see: super-pi session show)",
      actual: JSON.stringify(entry),
    })
  }
  const entryId = entry === "" ? null : EntryId.make(id)
  return sessions.fork({ conversationId, entryId, agent: {}, title: null, requestId: null })
}
