/**
 * Names of conversations in the storage port; their rules are in `domain/session-name.ts`.
 */
import type { Effect } from "effect"
import type { ConversationId } from "../domain/ids.ts"
import type { NameRecord, NameSpace } from "../domain/session-name.ts"
import type { ReadError } from "./errors.ts"

/** Which name. */
export interface NameKey {
  readonly namespace: NameSpace
  readonly principal: string
  readonly name: string
}

/** A change of names. Times in milliseconds since the epoch. */
export type NameChange =
  /** Gives a new name; refused as `Conflict` where it is taken, unless it `moves` from the conversation that had it. */
  | (NameKey & {
      readonly type: "give"
      readonly conversation: ConversationId
      readonly at: number
      readonly moves: boolean
    })
  /** Notes a use; nothing where there is no such name. */
  | (NameKey & { readonly type: "use"; readonly at: number })
  | (NameKey & { readonly type: "take" })
  /** Forgets what was not used since `before`, and of what is left all but the `keep` used last. */
  | { readonly type: "prune"; readonly before: number; readonly keep: number }

/** A name with what listings show of its conversation. */
export interface ListedName {
  readonly record: NameRecord
  readonly title: string | null
  /** When the conversation last changed. */
  readonly updatedAt: number
}

export interface NameReads {
  readonly name: (key: NameKey) => Effect.Effect<ListedName | null, ReadError>
  /** The most recently changed conversation first, then by name; `before` goes on behind that name. */
  readonly names: (options: {
    readonly namespace: NameSpace
    readonly principal: string
    readonly limit: number
    readonly before?: string
  }) => Effect.Effect<ReadonlyArray<ListedName>, ReadError>
}
