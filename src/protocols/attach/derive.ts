/**
 * A `Sessions` service from one that may lose its owner: every call goes through `call`, which may repeat it on another owner, every
 * watch through `watch`. Calls are made so that repeating changes nothing twice: `open`, `submit`, `write`, `reset`, `fork` and `answer` get a
 * request id when they have none; a `remove` that finds nothing when repeated has been carried out; everything else is a read or ends in
 * the same state when done twice.
 */
import { randomUUID } from "node:crypto"
import { Effect, Stream } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import { type Failure, ServiceFailure } from "../../domain/failure.ts"
import type { Attachment, OwnerGone, SessionsOver } from "./attachment.ts"

/** One call on whichever service is current; `repeated` when an earlier owner may have carried it out. */
export type Use<A> = (sessions: SessionsOver<OwnerGone>, repeated: boolean) => Effect.Effect<A, Failure | OwnerGone>

export interface Via {
  readonly call: <A>(use: Use<A>) => Effect.Effect<A, Failure>
  readonly watch: SessionsService["watch"]
}

/** The same payload under a request id of its own, so that it may be repeated. */
const identified = <P extends { readonly requestId: string | null }, A>(
  payload: P,
  use: (payload: P) => Effect.Effect<A, Failure>,
): Effect.Effect<A, Failure> => Effect.suspend(() => use({ ...payload, requestId: payload.requestId ?? randomUUID() }))

/** The service that answers through `via`. */
export const deriveSessions = ({ call, watch }: Via): SessionsService => ({
  open: (payload) => identified(payload, (one) => call((sessions) => sessions.open(one))),
  openNamed: (payload) => call((sessions) => sessions.openNamed(payload)),
  setName: (payload) => call((sessions) => sessions.setName(payload)),
  findNamed: (payload) => call((sessions) => sessions.findNamed(payload)),
  listNamed: (payload) => call((sessions) => sessions.listNamed(payload)),
  submit: (payload) => identified(payload, (one) => call((sessions) => sessions.submit(one))),
  write: (payload) => identified(payload, (one) => call((sessions) => sessions.write(one))),
  reset: (payload) => identified(payload, (one) => call((sessions) => sessions.reset(one))),
  withdraw: (payload) => call((sessions) => sessions.withdraw(payload)),
  fork: (payload) => identified(payload, (one) => call((sessions) => sessions.fork(one))),
  submission: (payload) => call((sessions) => sessions.submission(payload)),
  submissions: (payload) => call((sessions) => sessions.submissions(payload)),
  awaitSubmission: (payload) => call((sessions) => sessions.awaitSubmission(payload)),
  watch,
  cancel: (payload) => call((sessions) => sessions.cancel(payload)),
  state: (payload) => call((sessions) => sessions.state(payload)),
  configure: (payload) => call((sessions) => sessions.configure(payload)),
  list: (payload) => call((sessions) => sessions.list(payload)),
  transcript: (payload) => call((sessions) => sessions.transcript(payload)),
  remove: (payload) =>
    call((sessions, repeated) => {
      const removed = sessions.remove(payload)
      return repeated ? Effect.catchTag(removed, "NotFound", () => Effect.succeed({ removed: true })) : removed
    }),
  compact: (payload) => call((sessions) => sessions.compact(payload)),
  retry: (payload) => call((sessions) => sessions.retry(payload)),
  effects: (payload) => call((sessions) => sessions.effects(payload)),
  settleEffect: (payload) => call((sessions) => sessions.settleEffect(payload)),
  checkpoints: (payload) => call((sessions) => sessions.checkpoints(payload)),
  // Without a number a second undo takes back more: it is not repeated on another owner.
  undo: (payload) =>
    call((sessions, repeated) =>
      repeated && payload.checkpoint === null ? Effect.fail(undoUncertain) : sessions.undo(payload),
    ),
  harnesses: call((sessions) => sessions.harnesses),
  why: (payload) => call((sessions) => sessions.why(payload)),
  questions: (payload) => call((sessions) => sessions.questions(payload)),
  answer: (payload) => identified(payload, (one) => call((sessions) => sessions.answer(one))),
  queues: call((sessions) => sessions.queues),
  changeQueue: (payload) => call((sessions) => sessions.changeQueue(payload)),
  tasks: (payload) => call((sessions) => sessions.tasks(payload)),
  task: (payload) => call((sessions) => sessions.task(payload)),
  changeTask: (payload) => call((sessions) => sessions.changeTask(payload)),
  addMcpServers: (payload) => call((sessions) => sessions.addMcpServers(payload)),
  mcpServers: (payload) => call((sessions) => sessions.mcpServers(payload)),
  restartMcpServer: (payload) => call((sessions) => sessions.restartMcpServer(payload)),
  tree: call((sessions) => sessions.tree),
})

const undoUncertain = new ServiceFailure({
  code: "owner_gone",
  detail: "the process that holds the database ended during the undo; see: super-pi undo --list",
  reference: "attach",
})

const goneFailure = new ServiceFailure({
  code: "owner_gone",
  detail: "the process that holds the database ended; try again",
  reference: "attach",
})

/** The sessions of an attachment for a caller that does not take over: when the owner goes, calls fail with `owner_gone`. */
export const attachedSessions = ({ sessions }: Attachment): SessionsService =>
  deriveSessions({
    call: (use) => Effect.catchTag(use(sessions, false), "OwnerGone", () => goneFailure),
    watch: (payload) => watchOnce(sessions.watch(payload)),
  })

const watchOnce = <A>(stream: Stream.Stream<A, Failure | OwnerGone>): Stream.Stream<A, Failure> =>
  Stream.catchTag(stream, "OwnerGone", () => Stream.fail(goneFailure))
