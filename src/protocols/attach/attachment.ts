/**
 * What being attached to an owner means, apart from how it is done: the types that `attach.ts` provides and `takeover.ts` uses.
 */
import { Data, type Effect, Schema, type Stream } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { Peer, VersionMismatch } from "./handshake.ts"

/** The owner is gone; the call may or may not have been carried out. */
export class OwnerGone extends Data.TaggedError("OwnerGone") {
  override get message() {
    return "the owner of the database is gone"
  }
}

const reasons = {
  absent: "there is no such socket",
  refused: "nobody listens there",
  forbidden: "this user may not connect to it",
  silent: "whoever listens there does not answer",
  stranger: "something else than super-pi listens there",
} as const

/** Nobody of ours answers on the socket. */
export class NotAnswering extends Schema.TaggedError<NotAnswering>()("NotAnswering", {
  socket: Schema.String,
  reason: Schema.Literal("absent", "refused", "forbidden", "silent", "stranger"),
}) {
  override get message() {
    return `${this.socket}: ${reasons[this.reason]}`
  }
}

export type AttachFailure = NotAnswering | VersionMismatch

/** A sessions service each of whose methods may also fail with `E`. */
export type SessionsOver<E> = {
  readonly [K in keyof SessionsService]: SessionsService[K] extends (
    payload: infer P,
  ) => Effect.Effect<infer A, infer F>
    ? (payload: P) => Effect.Effect<A, F | E>
    : SessionsService[K] extends (payload: infer P) => Stream.Stream<infer A, infer F>
      ? (payload: P) => Stream.Stream<A, F | E>
      : SessionsService[K] extends Effect.Effect<infer A, infer F>
        ? Effect.Effect<A, F | E>
        : never
}

/** A live connection to an owner. */
export interface Attachment {
  readonly owner: Peer
  readonly sessions: SessionsOver<OwnerGone>
  /** Completes when the connection has ended, for whatever reason. */
  readonly gone: Effect.Effect<void>
}
