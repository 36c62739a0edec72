/**
 * The session contract served from a `Sessions` service. A fault of the node reaches the caller as a failure with a reference and the log
 * with its cause; it never ends the connection.
 */
import { randomUUID } from "node:crypto"
import { Cause, Effect, Option, Stream } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"
import type { SessionsService } from "../../actors/sessions.ts"
import { type Failure, ServiceFailure } from "../../domain/failure.ts"
import { relayWatch } from "./relay.ts"

const fault = (cause: Cause.Cause<unknown>): Effect.Effect<ServiceFailure> => {
  const reference = randomUUID().slice(0, 8)
  const failure = new ServiceFailure({ code: "defect", detail: `internal error (reference ${reference})`, reference })
  return Effect.as(Effect.annotateLogs(Effect.logError("attached call failed", cause), { reference }), failure)
}

const isFailure = (cause: Cause.Cause<Failure>): boolean => Option.isSome(Cause.failureOption(cause))

const guard = <A>(effect: Effect.Effect<A, Failure>): Effect.Effect<A, Failure> =>
  Effect.catchAllCause(effect, (cause) =>
    isFailure(cause) ? Effect.failCause(cause) : Effect.flatMap(fault(cause), Effect.fail),
  )

const guardStream = <A>(stream: Stream.Stream<A, Failure>): Stream.Stream<A, Failure> =>
  Stream.catchAllCause(stream, (cause) =>
    isFailure(cause) ? Stream.failCause(cause) : Stream.unwrap(Effect.map(fault(cause), Stream.fail)),
  )

/** The handlers of the group, as a layer. */
export const handlersOf = (sessions: SessionsService) =>
  SessionRpcs.toLayer({
    Open: (payload) => guard(sessions.open(payload)),
    OpenNamed: (payload) => guard(sessions.openNamed(payload)),
    SetName: (payload) => guard(sessions.setName(payload)),
    FindNamed: (payload) => guard(sessions.findNamed(payload)),
    ListNamed: (payload) => guard(sessions.listNamed(payload)),
    Submit: (payload) => guard(sessions.submit(payload)),
    Write: (payload) => guard(sessions.write(payload)),
    Reset: (payload) => guard(sessions.reset(payload)),
    Withdraw: (payload) => guard(sessions.withdraw(payload)),
    Fork: (payload) => guard(sessions.fork(payload)),
    ReadSubmission: (payload) => guard(sessions.submission(payload)),
    ListSubmissions: (payload) => guard(sessions.submissions(payload)),
    AwaitSubmission: (payload) => guard(sessions.awaitSubmission(payload)),
    Watch: (payload) => guardStream(relayWatch(sessions, payload)),
    Cancel: (payload) => guard(sessions.cancel(payload)),
    State: (payload) => guard(sessions.state(payload)),
    Configure: (payload) => guard(sessions.configure(payload)),
    List: (payload) => guard(sessions.list(payload)),
    Transcript: (payload) => guard(sessions.transcript(payload)),
    Remove: (payload) => guard(sessions.remove(payload)),
    Compact: (payload) => guard(sessions.compact(payload)),
    Retry: (payload) => guard(sessions.retry(payload)),
    Effects: (payload) => guard(sessions.effects(payload)),
    SettleEffect: (payload) => guard(sessions.settleEffect(payload)),
    Checkpoints: (payload) => guard(sessions.checkpoints(payload)),
    Undo: (payload) => guard(sessions.undo(payload)),
    ListHarnesses: () => guard(sessions.harnesses),
    Why: (payload) => guard(sessions.why(payload)),
    Questions: (payload) => guard(sessions.questions(payload)),
    Answer: (payload) => guard(sessions.answer(payload)),
    ListQueues: () => guard(sessions.queues),
    ChangeQueue: (payload) => guard(sessions.changeQueue(payload)),
    ListTasks: (payload) => guard(sessions.tasks(payload)),
    ReadTask: (payload) => guard(sessions.task(payload)),
    ChangeTask: (payload) => guard(sessions.changeTask(payload)),
    AddMcpServers: (payload) => guard(sessions.addMcpServers(payload)),
    ListMcpServers: (payload) => guard(sessions.mcpServers(payload)),
    RestartMcpServer: (payload) => guard(sessions.restartMcpServer(payload)),
    Tree: () => guard(sessions.tree),
  })
