/**
 * Responses that are stored: read, cancelled and deleted by their id, made again from the transcript.
 */
import { Effect } from "effect"
import type { Settled } from "../../actors/contract.ts"
import type { SessionsService } from "../../actors/sessions.ts"
import { type Failure, Refused } from "../../domain/failure.ts"
import { isJsonObject, type JsonObject } from "../../domain/json.ts"
import { toolName } from "../../domain/structured-output.ts"
import type { Handler, HttpReply, HttpRequest } from "../http/route.ts"
import { asProblem, type Parts } from "./chat.ts"
import { deletedKind, findResponse, metadataKind, type Stored } from "./follow-up.ts"
import { endOf, entriesOf, isInput, saidIn } from "./recall.ts"
import { responseId } from "./response-id.ts"
import { type ResponseBase, type ResponseObject, responseObject } from "./response-object.ts"
import { responseRenderer, tellAll } from "./response-renderer.ts"
import { abandonSubmission } from "./turn.ts"
import type { Check } from "./value.ts"

const metadataOf = ({ key, transcript }: Stored): JsonObject => {
  for (const { data, kind } of transcript) {
    if (kind !== metadataKind || !isJsonObject(data) || data.submission !== key.submissionId) continue
    return isJsonObject(data.metadata) ? data.metadata : {}
  }
  return {}
}

/** Whether its run gave a value: then its words were no answer. */
const gaveValue = (said: ReturnType<typeof saidIn>): boolean =>
  said.some((one) => one.type === "callEnded" && one.name === toolName && one.structured !== null)

const anything: Check = () => []

/** A stored response as it is now. */
const objectOf = (sessions: SessionsService, stored: Stored): Effect.Effect<ResponseObject, Failure> =>
  Effect.gen(function* () {
    const { key, submission, target, transcript } = stored
    const { status, submission_id: submissionId } = submission
    const running = status === "queued" || status === "placed"
    // One that a parked run holds up is answered at once as well; any other that runs would make us wait for its end.
    const settled: Settled | null = running ? null : yield* sessions.awaitSubmission({ ...target, submissionId })
    const entries = entriesOf(transcript, settled ?? { entry_id: null, placed_entry_id: submission.placed_entry_id })
    const said = saidIn(entries)
    const wrote = entries.flatMap((entry) => entry.model).findLast((message) => message.role === "assistant")
    const base: ResponseBase = {
      id: responseId(key),
      created: Math.floor(submission.created_at / 1000),
      model: settled?.model ?? (wrote?.role === "assistant" ? wrote.model : (yield* sessions.state(target)).model),
      conversation: key.conversationId,
      previous: null,
      instructions: null,
      metadata: metadataOf(stored),
      format: { type: "text" },
      background: false,
    }
    const check = gaveValue(said) ? anything : null
    const view = responseRenderer.init({ base, check, submission: submissionId, running: false })
    const ended = settled === null ? [] : [{ type: "ended", end: endOf(settled, entries) } as const]
    const [now] = tellAll(view, [...said, ...ended])
    return now.final ?? responseObject(base, now.output, null, status === "queued" ? "queued" : "in_progress")
  })

const idIn = ({ params }: HttpRequest): string => params.id ?? ""

export const readResponseById =
  ({ service: { sessions } }: Parts): Handler =>
  (request) =>
    Effect.mapError(
      Effect.map(
        Effect.flatMap(findResponse(sessions, idIn(request), request.principal), (stored) =>
          objectOf(sessions, stored),
        ),
        (body): HttpReply => ({ type: "json", body }),
      ),
      asProblem,
    )

/** Stops a response that runs or waits; one that ended is answered as it is. */
export const cancelResponse =
  ({ service: { sessions } }: Parts): Handler =>
  (request) =>
    Effect.gen(function* () {
      const found = yield* findResponse(sessions, idIn(request), request.principal)
      yield* abandonSubmission(sessions, found.target, found.key.submissionId)
      const stored = yield* findResponse(sessions, idIn(request), request.principal)
      const reply: HttpReply = { type: "json", body: yield* objectOf(sessions, stored) }
      return reply
    }).pipe(Effect.mapError(asProblem))

/** The conversation goes where it has no other input; else a note says that the response is gone. */
export const deleteResponse =
  ({ service: { sessions } }: Parts): Handler =>
  (request) =>
    Effect.gen(function* () {
      const id = idIn(request)
      const { key, target, transcript } = yield* findResponse(sessions, id, request.principal)
      yield* abandonSubmission(sessions, target, key.submissionId)
      const note = sessions.write({
        ...target,
        kind: deletedKind,
        data: { submission: key.submissionId },
        requestId: `openai:delete:${key.submissionId}`,
      })
      const alone = transcript.filter(isInput).length <= 1
      yield* alone
        ? Effect.catchAll(sessions.remove(target), (failure) =>
            failure instanceof Refused || failure._tag === "Busy" ? note : Effect.fail<Failure>(failure),
          )
        : note
      const reply: HttpReply = { type: "json", body: { id, object: "response", deleted: true } }
      return reply
    }).pipe(Effect.mapError(asProblem))
