/**
 * Checkpoints and undo, as the session contract has them. An undo needs an idle conversation; one at a time runs on a node. What was undone is
 * told to the model with its next request, since it has seen its changes succeed.
 */
import { Effect } from "effect"
import { newReference, storageFailure } from "../actors/conversation/failures.ts"
import type { SubmissionRow } from "../actors/conversation/machine/data.ts"
import type { SessionsService, Target } from "../actors/sessions.ts"
import type { UndoResult } from "../domain/checkpoint.ts"
import { Busy, type Failure, Refused, ServiceFailure } from "../domain/failure.ts"
import { text } from "../domain/message.ts"
import type { JournalError } from "../harness/plugins/git-checkpoint/journal.ts"
import type { StoreService } from "../storage/store.ts"
import type { Request } from "./sessions-write.ts"

export interface UndoParts {
  readonly store: StoreService
  readonly request: Request
  /** Fails with `NotFound` for a conversation that is not there or not the caller's. */
  readonly allowed: (target: Target) => Effect.Effect<void, Failure>
  /** Whether the conversation has work. */
  readonly works: (target: Target) => Effect.Effect<boolean, Failure>
}

/** Loaded with the first use: most processes never undo anything. */
const code = Effect.promise(() => import("../harness/plugins/git-checkpoint/undo.ts"))

const ours = (error: JournalError): Effect.Effect<never, Failure> => {
  switch (error._tag) {
    case "CheckpointFailed":
    case "InvalidDocument":
    case "NewerDocument": {
      const reference = newReference()
      return new ServiceFailure({ code: "checkpoint", detail: error.message, reference })
    }
    default:
      return Effect.flatMap(storageFailure(error), (failure) => Effect.fail<Failure>(failure))
  }
}

/** Paths that the model is told. */
const pathsTold = 50

const noteFor = ({ left, restored }: UndoResult): string => {
  const shown = restored.slice(0, pathsTold).map((path) => `- ${path}`)
  const more = restored.length > pathsTold ? [`- and ${restored.length - pathsTold} more`] : []
  const kept =
    left.length === 0 ? [] : ["Left as they are:", ...left.slice(0, pathsTold).map(({ path }) => `- ${path}`)]
  return [
    "Note: the person undid changes of earlier turns. These paths are again as they were before; read them anew before you rely on them:",
    ...shown,
    ...more,
    ...kept,
  ].join("\n")
}

export const makeUndo = (parts: UndoParts): Pick<SessionsService, "checkpoints" | "undo"> => {
  const { allowed, request, store, works } = parts
  const one = Effect.unsafeMakeSemaphore(1)
  return {
    checkpoints: (target) =>
      Effect.gen(function* () {
        yield* allowed(target)
        const { listCheckpoints } = yield* code
        return yield* Effect.catchAll(listCheckpoints(store, target.conversationId), ours)
      }),
    undo: ({ checkpoint, force = false, ...target }) =>
      one.withPermits(1)(
        Effect.gen(function* () {
          yield* allowed(target)
          if (yield* works(target)) {
            const detail = "wait for its answer, or cancel it, before undoing what it changed"
            return yield* new Busy({ what: "conversation", detail, retryAfterMs: null })
          }
          const { undo } = yield* code
          const result = yield* Effect.catchAll(
            undo(store, target.conversationId, { id: checkpoint, force }),
            (error): Effect.Effect<never, Failure> => {
              if (error._tag === "NothingToUndo") return new Refused({ rule: "undo", detail: error.message })
              if (error._tag === "UndoRefused") return new Refused({ rule: "undo", detail: error.message })
              return ours(error)
            },
          )
          if (result.restored.length > 0) {
            const entry = {
              kind: "pi.undo",
              model: [{ role: "user" as const, content: [text(noteFor(result))] }],
              data: JSON.parse(JSON.stringify(result)),
              head: null,
              edits: [],
            }
            yield* request<SubmissionRow>(target, (reply) => ({ type: "write", entry, requestId: null, reply })).pipe(
              Effect.catchAll((failure) =>
                Effect.logWarning(`the undo was not noted in the transcript: ${failure.message}`),
              ),
            )
          }
          return result
        }),
      ),
  }
}
