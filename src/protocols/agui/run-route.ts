/**
 * `POST /agui/v1/run`: a run of a front end.
 *
 *   read → thread opened → stream begins: watch → snapshot → inputs submitted, questions answered → followed to its end
 *
 * The watch comes before the inputs, so that no event of theirs is missed and a question can be asked. A client that leaves cancels what it
 * submitted; a server that stops cancels nothing.
 */
import { Effect, Either } from "effect"
import type { SubmissionView } from "../../actors/contract.ts"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { Failure } from "../../domain/failure.ts"
import type { EntryId, SubmissionId, TaskId } from "../../domain/ids.ts"
import { problemOf } from "../http/problems.ts"
import type { EventSink, Handler, HttpRequest } from "../http/route.ts"
import type { ProtocolService } from "../service.ts"
import type { AguiMessage } from "./protocol.ts"
import { type NewMessage, type RunInput, readRunInput } from "./run-input.ts"
import { answering, awaiting, fail, pause } from "./settle.ts"
import { type ClientMessages, ThreadStream } from "./stream.ts"
import { openThread } from "./thread.ts"
import { init } from "./view.ts"

/** What a client calls itself where it answers a question, for those who come later. */
export const clientName = "ag-ui"

/** Messages of a client whose entries are looked up, the newest ones. */
const namesLimit = 200

/** The request that a message makes: the same message again is the same input. */
export const messageRequest = (id: string): string => `agui:${id}`

interface Submitted {
  readonly id: SubmissionId
  readonly message: AguiMessage
  /** It was submitted before. */
  readonly known: boolean
  readonly status: SubmissionView["status"]
  readonly reason: string | null
  readonly detail: string | null
}

/** One run's dealings with its conversation. */
const makeRun = (sessions: SessionsService, target: Required<Target>, input: RunInput) => {
  let submitted: ReadonlyArray<Submitted> = []

  const existing = (requestId: string): Effect.Effect<SubmissionView | null, Failure> =>
    sessions
      .submission({ ...target, submissionId: null, requestId })
      .pipe(Effect.catchTag("NotFound", () => Effect.succeed(null)))

  const submitOne = ({ content, id, message }: NewMessage) =>
    Effect.gen(function* () {
      const before = yield* existing(messageRequest(id))
      const again = before?.status === "unanswered"
      const requestId = again ? messageRequest(`${id}@${input.runId}`) : messageRequest(id)
      const receipt = yield* sessions.submit({ ...target, content, requestId })
      const { detail, reason, status, submission_id } = receipt
      const known = before !== null && !again
      submitted = [...submitted, { id: submission_id, message, known, status, reason, detail }]
    })

  /** Submits the new messages; one that was not answered is tried again by a run of another id. */
  const submit = Effect.gen(function* () {
    // Each whole: what was committed is remembered, or a client that leaves would leave it behind.
    for (const fresh of input.fresh) yield* Effect.uninterruptible(submitOne(fresh))
    return submitted
  })

  /** Answers the questions that are open. The first answer counts: where somebody else was first, the run goes on with theirs. */
  const answer = (open: ReadonlyArray<TaskId>) =>
    Effect.forEach(
      input.resume.filter(({ question }) => open.includes(question)),
      ({ answer, question }) =>
        sessions
          .answer({
            questionId: question,
            answer,
            requestId: `agui:${input.runId}:${question}`,
            client: clientName,
            principal: target.principal,
          })
          .pipe(Effect.catchTag("Refused", () => Effect.void)),
      { discard: true },
    )

  /** Which entries the client's messages became. */
  const own: ClientMessages["own"] = Effect.gen(function* () {
    const names = new Map<EntryId, string>()
    const ids = input.userIds.slice(-namesLimit)
    const found = yield* Effect.forEach(ids, (id) => Effect.map(existing(messageRequest(id)), (row) => ({ id, row })), {
      concurrency: 4,
    })
    for (const { id, row } of found)
      if (row !== null && row.placed_entry_id !== null) names.set(row.placed_entry_id, id)
    return { names, pending: input.fresh.map(({ message }) => message) }
  })

  /** The turn that waited for the answers of this run. */
  const resumed = Effect.map(input.resume.length === 0 ? Effect.succeed([]) : sessions.submissions(target), (open) =>
    open.filter(({ status }) => status === "placed").map(({ submission_id }) => submission_id),
  )

  /** The client left: what it submitted is withdrawn, and the turn that it waits for is cancelled. What others queued goes on. */
  const leave = Effect.gen(function* () {
    // The last one first, so that none of them begins because the one before it ends.
    const own = submitted.map(({ id }) => id).toReversed()
    const ids = new Set([...own, ...(yield* resumed)])
    for (const submissionId of ids) yield* sessions.cancel({ ...target, submissionId })
  }).pipe(
    Effect.catchAll((failure) => Effect.logDebug(`a run that was left: ${failure.message}`)),
    Effect.annotateLogs({ conversation_id: target.conversationId }),
  )

  return { submit, answer, own, leave }
}

/** Follows the run to its end; a failure is its end. */
const stream = (
  service: ProtocolService,
  request: HttpRequest,
  target: Required<Target>,
  input: RunInput,
  sink: EventSink,
): Effect.Effect<void> => {
  const { sessions } = service
  const run = makeRun(sessions, target, input)
  const { hasMessages, interrupts, kept, resume, runId, threadId } = input
  const thread = new ThreadStream(init({ threadId, runId, interrupts, hasMessages }), {
    sessions,
    target,
    sink,
    client: { kept, own: run.own },
  })

  const whole = Effect.gen(function* () {
    const queue = yield* thread.watch({ after: null, interactive: true })
    const first = yield* thread.take(queue)
    if (first === null) return yield* thread.close
    // What came with the snapshot is told once it is known what this run waits for.
    yield* thread.tell(first.slice(0, 1))
    if (thread.view.over) return
    const open = (thread.view.session?.questions ?? []).map((question) => question.question_id)
    const answers = resume.map(({ question }) => question).filter((question) => open.includes(question))
    thread.view = answering(thread.view, answers)
    const submitted = yield* run.submit
    const refused = submitted.find(({ status }) => status === "unanswered")
    if (refused !== undefined) {
      const message = refused.detail ?? "the message was not answered"
      return yield* thread.step(fail(thread.view, refused.reason ?? "unanswered", message))
    }
    const inputs = submitted.map(({ id, known, status }) => ({ id, known, done: status === "done" }))
    yield* run.answer(answers)
    yield* thread.step(awaiting(thread.view, inputs))
    yield* thread.tell(first.slice(1))
    yield* thread.follow(queue, { rest: pause })
    if (!thread.view.over) yield* thread.close
  }).pipe(Effect.scoped)

  return whole.pipe(
    Effect.catchAll((failure) => {
      const { code, message } = problemOf(failure)
      return Effect.ignore(thread.step(fail(thread.view, code, message)))
    }),
    Effect.onInterrupt(() => (request.clientLeft() && !thread.view.over ? run.leave : thread.close)),
  )
}

export const runHandler =
  (service: ProtocolService): Handler =>
  (request) =>
    Effect.gen(function* () {
      const read = readRunInput(yield* request.json)
      if (Either.isLeft(read)) return yield* Effect.fail(problemOf(read.left))
      const input = read.right
      const { agent, threadId } = input
      const { principal } = request
      const target = yield* Effect.mapError(
        openThread(service.sessions, service.remote, { id: threadId, principal, agent }),
        problemOf,
      )
      return { type: "events" as const, run: (sink) => stream(service, request, target, input, sink) }
    })
