/**
 * What a response follows: the conversation of `previous_response_id`. The newest one is gone on from; from any other one a fork goes its own
 * way, so that each response keeps the past that it was given.
 */
import { Effect } from "effect"
import type { SubmissionView } from "../../actors/contract.ts"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Entry } from "../../domain/entry.ts"
import { type Failure, InvalidRequest, NotFound } from "../../domain/failure.ts"
import type { EntryId, SubmissionId } from "../../domain/ids.ts"
import { isJsonObject } from "../../domain/json.ts"
import { isInput } from "./recall.ts"
import { type ResponseKey, responseKey } from "./response-id.ts"

/** The kind of the note that a response was deleted. */
export const deletedKind = "openai.deleted"

/** The kind of the note that keeps the metadata of a response. */
export const metadataKind = "openai.metadata"

/** A response as it is stored. */
export interface Stored {
  readonly key: ResponseKey
  readonly target: Target
  readonly submission: SubmissionView
  readonly transcript: ReadonlyArray<Entry>
}

const isDeleted = (transcript: ReadonlyArray<Entry>, id: SubmissionId): boolean =>
  transcript.some(({ data, kind }) => kind === deletedKind && isJsonObject(data) && data.submission === id)

/** A response of the caller's, or `NotFound`. */
export const findResponse = (
  sessions: SessionsService,
  id: string,
  principal: string,
): Effect.Effect<Stored, Failure> => {
  const absent = new NotFound({ what: `response ${id.slice(0, 80)}` })
  const key = responseKey(id)
  if (key === null) return Effect.fail(absent)
  const target: Target = { conversationId: key.conversationId, principal }
  const found = Effect.gen(function* () {
    const submission = yield* sessions.submission({ ...target, submissionId: key.submissionId, requestId: null })
    const transcript = yield* sessions.transcript(target)
    if (submission.kind !== "input" || isDeleted(transcript, key.submissionId)) return yield* absent
    return { key, target, submission, transcript }
  })
  return Effect.catchTag(found, "NotFound", () => Effect.fail(absent))
}

/** Where to go on: in the conversation itself (null), or in a fork behind an entry. */
const branchOf = (
  { submission, transcript }: Stored,
  answer: EntryId | null,
  others: ReadonlyArray<SubmissionView>,
): EntryId | null => {
  const end = answer ?? submission.placed_entry_id
  if (end === null) return null
  const later = transcript.some((entry) => entry.id > end && isInput(entry))
  const waiting = others.some((one) => one.kind === "input" && one.submission_id > submission.submission_id)
  return later || waiting ? end : null
}

/** The conversation that a response goes on in; `fork` makes one where it has to be another one. */
export const continued = <A>(
  sessions: SessionsService,
  previous: string,
  principal: string,
  options: {
    readonly same: (target: Target) => Effect.Effect<A, Failure>
    readonly fork: (target: Target, entryId: EntryId) => Effect.Effect<A, Failure>
  },
): Effect.Effect<A, Failure> =>
  Effect.gen(function* () {
    const stored = yield* Effect.catchTag(findResponse(sessions, previous, principal), "NotFound", () =>
      Effect.fail(
        new InvalidRequest({
          path: "previous_response_id",
          expected: "the id of a response of yours",
          actual: JSON.stringify(previous.slice(0, 80)),
        }),
      ),
    )
    const { submission, target } = stored
    const { submission_id: submissionId } = submission
    const over = submission.status === "done"
    const answer = over ? (yield* sessions.awaitSubmission({ ...target, submissionId })).entry_id : null
    const branch = branchOf(stored, answer, yield* sessions.submissions(target))
    return yield* branch === null ? options.same(target) : options.fork(target, branch)
  })
