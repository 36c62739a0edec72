/**
 * The typed address of an actor. It stays valid across restarts; after the actor's final end it addresses nothing.
 */
import type { StopReason } from "./stop-reason.ts"

declare const Accepts: unique symbol

export interface ActorRef<in M> {
  /** Unique in its system, grows with time. */
  readonly id: number
  /** For example `/user/conversation-12`. */
  readonly path: string
  /** Type only: the messages that the actor accepts. */
  readonly [Accepts]?: (message: M) => void
}

/** What a watcher learns when a watched actor has ended for good. */
export interface Down {
  readonly ref: ActorRef<never>
  readonly reason: StopReason
}

/**
 * Where an actor answers an ask. Each method answers at once; false when nobody waits any more: after another answer, the deadline, the
 * end of the asked actor or the interruption of the asker. Any actor or fiber may hold it and answer later.
 */
export interface ReplyTo<in A, in E = never> {
  readonly succeed: (value: A) => boolean
  readonly fail: (error: E) => boolean
  readonly die: (defect: unknown) => boolean
}
