/**
 * What of a conversation stands in the chat. Others may be attached to it, and its node may go and come back, so:
 * 1. An input from elsewhere is shown; one that was typed here stands there already.
 * 2. After a snapshot in the middle, entries of which no event was seen come from the transcript: nothing is missing, nothing shown twice.
 */
import { Effect, Option } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import { type Entry, EntryKind } from "../domain/entry.ts"
import type { Event } from "../domain/event.ts"
import type { ConversationId, EntryId } from "../domain/ids.ts"
import { transcriptText } from "../protocols/terminal/transcript.ts"
import type { ChatScreen } from "./chat-screen.ts"

export interface Follower {
  /** Begins with a conversation; these entries are known. */
  readonly begin: (entries: ReadonlyArray<Entry>) => void
  /** A line is submitted: the request id for it. */
  readonly typed: () => string
  /** Shows an event. */
  readonly event: (event: Event) => Effect.Effect<void>
}

export const makeFollower = (sessions: SessionsService, screen: ChatScreen): Follower => {
  /** Request ids of what was typed here and is not placed yet. */
  const unplaced = new Set<string>()
  let known = 0
  /** The newest entry that was shown. */
  let newest = 0

  const isOwn = (conversationId: ConversationId, entry: EntryId): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      for (const requestId of unplaced) {
        const found = yield* Effect.option(sessions.submission({ conversationId, submissionId: null, requestId }))
        if (Option.getOrNull(found)?.placed_entry_id !== entry) continue
        unplaced.delete(requestId)
        return true
      }
      return false
    })

  /** Shows what lies between what is known and a snapshot, which counts so many entries. */
  const catchUp = (conversationId: ConversationId, count: number): Effect.Effect<void> =>
    Effect.gen(function* () {
      const entries = (yield* sessions.transcript({ conversationId })).slice(0, count)
      const missed: Array<Entry> = []
      for (const entry of entries) {
        if (entry.id <= newest || entry.kind === EntryKind.system) continue
        const own = entry.model.some(({ role }) => role === "user") && (yield* isOwn(conversationId, entry.id))
        if (!own) missed.push(entry)
      }
      newest = Math.max(newest, entries.at(-1)?.id ?? 0)
      if (missed.length === 0) return
      screen.settle()
      screen.say(transcriptText(missed, screen.paint))
    }).pipe(Effect.ignore)

  return {
    begin: (entries) => {
      unplaced.clear()
      known = entries.length
      newest = entries.at(-1)?.id ?? 0
    },
    typed: () => {
      const requestId = crypto.randomUUID()
      unplaced.add(requestId)
      return requestId
    },
    event: (event) =>
      Effect.gen(function* () {
        const { conversation_id: conversationId } = event
        if (event.type === "snapshot") {
          if (event.session.entries > known) yield* catchUp(conversationId, event.session.entries)
          known = event.session.entries
        } else if ("entry_id" in event && event.entry_id !== null) newest = Math.max(newest, event.entry_id)
        const isInput = event.type === "message_completed" && event.role === "user"
        screen.event(event, isInput && unplaced.size > 0 && (yield* isOwn(conversationId, event.entry_id)))
      }),
  }
}
