/**
 * Internal errors as the failure words of the session contract. The cause goes to the log under the reference id; the caller gets one
 * line that says what to do.
 */
import { Effect } from "effect"
import type { Failure } from "../../domain/failure.ts"
import { NotFound, ServiceFailure } from "../../domain/failure.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { CommitError, ReadError } from "../../storage/errors.ts"

/** A fresh reference id: eight hexadecimal digits. */
export const newReference = (): string =>
  Math.floor(Math.random() * 0x1_0000_0000)
    .toString(16)
    .padStart(8, "0")

/** A storage failure towards a caller. */
export const storageFailure = (error: CommitError | ReadError): Effect.Effect<ServiceFailure> => {
  const reference = newReference()
  const code = error._tag === "Fenced" ? "fenced" : error._tag === "CorruptRow" ? "corrupt" : "storage"
  return Effect.as(
    Effect.logError(error.message).pipe(Effect.annotateLogs({ reference, error: error._tag })),
    new ServiceFailure({ code, detail: error.message, reference }),
  )
}

/** Fails with a storage error's failure word. */
export const orStorageFailure = <A, R>(
  effect: Effect.Effect<A, CommitError | ReadError, R>,
): Effect.Effect<A, Failure, R> =>
  Effect.catchAll(effect, (error) => Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure)))

export const noConversation = (id: ConversationId): NotFound => new NotFound({ what: `conversation ${id}` })
