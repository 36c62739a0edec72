/**
 * One conversation read from the database, for the commands that show it.
 */
import { Effect, type Scope } from "effect"
import type { Conversation } from "../domain/conversation.ts"
import { ConversationId } from "../domain/ids.ts"
import type { OpenError, ReadError } from "../storage/errors.ts"
import type { StoreReads } from "../storage/store.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, usageFailure } from "./exit.ts"
import { openReader } from "./node.ts"

/** The ID among the words of a command. */
export const idOf = (invocation: Invocation): ConversationId => {
  const word = invocation.words[0] ?? ""
  const id = /^\d{1,16}$/.test(word) ? Number(word) : 0
  if (id < 1 || !Number.isSafeInteger(id)) {
    throw usageFailure(`ID: expected a conversation number, got "${word}"; see: super-pi session list`)
  }
  return ConversationId.make(id)
}

export interface Found {
  readonly store: StoreReads
  readonly conversation: Conversation
}

export const readConversation = (
  invocation: Invocation,
): Effect.Effect<Found, OpenError | ReadError | CommandFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const id = idOf(invocation)
    const store = yield* openReader(pathsOf(invocation))
    const conversation = store === null ? null : yield* store.conversation(id)
    if (store === null || conversation === null) {
      return yield* Effect.fail(new CommandFailure(`conversation ${id} was not found; see: super-pi session list`))
    }
    return { store, conversation }
  })
