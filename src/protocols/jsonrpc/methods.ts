/**
 * The methods: each decodes its parameters and asks the sessions on behalf of the connection's principal. Whether a method is heavy (its
 * answer may be large) decides how many of them one connection runs at once.
 */

import type { Schema } from "effect"
import { Clock, Effect, Either } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import { type Failure, type InvalidRequest, Refused } from "../../domain/failure.ts"
import type { QueueChange } from "../../domain/queue.ts"
import { type Authenticator, localPrincipal } from "../auth/tokens.ts"
import { remoteAgent } from "../remote.ts"
import type { ProtocolService } from "../service.ts"
import type { Login } from "./login.ts"
import {
  AckParams,
  AwaitParams,
  CancelParams,
  CompactParams,
  ConfigureParams,
  ConversationParams,
  EffectsParams,
  ForkParams,
  JobParams,
  ListParams,
  LoginParams,
  McpAddParams,
  McpListParams,
  McpRestartParams,
  NoParams,
  OpenParams,
  PruneParams,
  paramsDecoder,
  QuestionsParams,
  QueueParams,
  ResetParams,
  RespondParams,
  SettleEffectParams,
  SubmissionParams,
  SubmitParams,
  TaskAbortParams,
  TaskParams,
  TasksParams,
  UndoParams,
  UnwatchParams,
  WatchParams,
  WhyParams,
  WriteParams,
} from "./params.ts"
import type { Watches } from "./watches.ts"

/** What a server serves, and who may call. */
export interface Service extends ProtocolService {
  /** Default: everybody is `local`. */
  readonly auth?: Authenticator
  /** On whose behalf every connection acts, where the transport knows. */
  readonly principal?: string
}

/** What a call knows of its connection. */
export interface Caller {
  readonly principal: string
  readonly watches: Watches
}

/** An answer; `afterwards` runs once the answer is on its way. */
export interface Answer {
  readonly result: unknown
  readonly afterwards?: Effect.Effect<void>
}

export interface Method {
  readonly heavy: boolean
  readonly run: (params: unknown, caller: Caller) => Effect.Effect<Answer, Failure>
}

export type Methods = ReadonlyMap<string, Method>

/** The one method that a connection may call before it has logged in. */
export const loginMethod = "auth.login"

const method =
  (heavy: boolean) =>
  <A, I>(
    schema: Schema.Schema<A, I>,
    run: (params: A, as: { readonly principal: string }, caller: Caller) => Effect.Effect<unknown, Failure>,
  ): Method => {
    let decode: ReturnType<typeof paramsDecoder<A, I>> | null = null
    return {
      heavy,
      run: (params, caller) =>
        Effect.suspend(() => {
          decode ??= paramsDecoder(schema)
          return Either.match(decode(params), {
            onLeft: (error: InvalidRequest): Effect.Effect<Answer, Failure> => Effect.fail(error),
            onRight: (decoded) =>
              Effect.map(run(decoded, { principal: caller.principal }, caller), (result): Answer => ({ result })),
          })
        }),
    }
  }

const light = method(false)
const heavy = method(true)

/** What is about the whole node is for whoever it belongs to. */
const forOperator = <A>(
  { principal }: { readonly principal: string },
  run: Effect.Effect<A, Failure>,
): Effect.Effect<A, Failure> =>
  principal === localPrincipal
    ? run
    : Effect.fail(new Refused({ rule: "operator", detail: `only the principal ${localPrincipal} may ask for this` }))

const tokenParams = paramsDecoder(LoginParams)

/** `auth.login`, whose outcome is more than an answer: a wrong token is an error of its own. */
export const loginToken = (params: unknown): Effect.Effect<string, InvalidRequest> =>
  Effect.map(tokenParams(params), ({ token }) => token)

/** Tries a token at the time of the clock. */
export const attemptLogin = (login: Login, token: string) =>
  Effect.map(Clock.currentTimeMillis, (now) => login.attempt(token, now))

/** The methods of a server. */
export const makeMethods = (service: Service): Methods => {
  const { models, remote, sessions } = service
  const chosen = <A extends { readonly agent: AgentDocument }>(
    params: A,
    as: { readonly principal: string },
    opens: boolean,
  ) => Effect.map(remoteAgent(params.agent, remote, opens), (agent) => ({ ...params, agent, ...as }))
  const names: Array<string> = [loginMethod]
  const changeQueue = (change: QueueChange) => sessions.changeQueue({ change })

  const watch = paramsDecoder(WatchParams)
  const methods = new Map<string, Method>([
    [
      "session.open",
      light(OpenParams, (params, as) =>
        Effect.flatMap(chosen(params, as, params.conversationId === null), sessions.open),
      ),
    ],
    ["session.submit", light(SubmitParams, (params, as) => sessions.submit({ ...params, ...as }))],
    ["session.write", light(WriteParams, (params, as) => sessions.write({ ...params, ...as }))],
    ["session.reset", light(ResetParams, (params, as) => sessions.reset({ ...params, ...as }))],
    ["session.withdraw", light(AwaitParams, (params, as) => sessions.withdraw({ ...params, ...as }))],
    ["session.fork", heavy(ForkParams, (params, as) => Effect.flatMap(chosen(params, as, false), sessions.fork))],
    ["session.submission", light(SubmissionParams, (params, as) => sessions.submission({ ...params, ...as }))],
    ["session.submissions", heavy(ConversationParams, (params, as) => sessions.submissions({ ...params, ...as }))],
    ["session.await", light(AwaitParams, (params, as) => sessions.awaitSubmission({ ...params, ...as }))],
    [
      "session.watch",
      {
        heavy: false,
        run: (params, { principal, watches }) =>
          Effect.gen(function* () {
            const target = yield* watch(params)
            const { watchId, start } = yield* watches.open({ ...target, principal })
            return { result: { watchId }, afterwards: start }
          }),
      },
    ],
    [
      "session.ack",
      light(AckParams, (params, _as, { watches }) => watches.acknowledge(params.watchId, params.delivery)),
    ],
    ["session.unwatch", light(UnwatchParams, (params, _as, { watches }) => watches.close(params.watchId))],
    ["session.cancel", light(CancelParams, (params, as) => sessions.cancel({ ...params, ...as }))],
    ["session.state", heavy(ConversationParams, (params, as) => sessions.state({ ...params, ...as }))],
    ["session.list", heavy(ListParams, (params, as) => sessions.list({ ...params, ...as }))],
    ["session.transcript", heavy(ConversationParams, (params, as) => sessions.transcript({ ...params, ...as }))],
    [
      "session.configure",
      light(ConfigureParams, (params, as) => Effect.flatMap(chosen(params, as, false), sessions.configure)),
    ],
    ["session.remove", light(ConversationParams, (params, as) => sessions.remove({ ...params, ...as }))],
    ["session.compact", light(CompactParams, (params, as) => sessions.compact({ ...params, ...as }))],
    ["session.retry", light(ConversationParams, (params, as) => sessions.retry({ ...params, ...as }))],
    ["session.questions", heavy(QuestionsParams, (params, as) => sessions.questions({ ...params, ...as }))],
    [
      "ui.respond",
      light(RespondParams, (params, as) => sessions.answer({ ...params, client: params.client ?? "rpc", ...as })),
    ],
    ["effect.list", heavy(EffectsParams, (params, as) => sessions.effects({ ...params, ...as }))],
    ["effect.settle", light(SettleEffectParams, (params, as) => sessions.settleEffect({ ...params, ...as }))],
    ["checkpoint.list", heavy(ConversationParams, (params, as) => sessions.checkpoints({ ...params, ...as }))],
    ["checkpoint.undo", heavy(UndoParams, (params, as) => sessions.undo({ ...params, ...as }))],
    ["call.why", light(WhyParams, (params, as) => sessions.why({ ...params, ...as }))],
    ["workspace.metadata", light(NoParams, () => sessions.harnesses)],
    ["queue.list", light(NoParams, (_params, as) => forOperator(as, sessions.queues))],
    ["queue.pause", light(QueueParams, ({ queue }, as) => forOperator(as, changeQueue({ type: "pause", queue })))],
    ["queue.resume", light(QueueParams, ({ queue }, as) => forOperator(as, changeQueue({ type: "resume", queue })))],
    ["queue.retry", light(JobParams, ({ jobId }, as) => forOperator(as, changeQueue({ type: "retry", job: jobId })))],
    [
      "queue.cancel",
      light(JobParams, ({ jobId, reason }, as) => forOperator(as, changeQueue({ type: "cancel", job: jobId, reason }))),
    ],
    ["queue.prune", light(PruneParams, ({ before }, as) => forOperator(as, changeQueue({ type: "prune", before })))],
    ["task.list", light(TasksParams, (params, as) => forOperator(as, sessions.tasks(params)))],
    ["task.show", heavy(TaskParams, (params, as) => forOperator(as, sessions.task(params)))],
    [
      "task.retry",
      light(TaskParams, ({ taskId }, as) =>
        forOperator(as, sessions.changeTask({ change: { type: "retry", task: taskId } })),
      ),
    ],
    [
      "task.abort",
      light(TaskAbortParams, ({ background, taskId }, as) =>
        forOperator(as, sessions.changeTask({ change: { type: "abort", task: taskId, background } })),
      ),
    ],
    [
      "task.discard",
      light(TaskParams, ({ taskId }, as) =>
        forOperator(as, sessions.changeTask({ change: { type: "discard", task: taskId } })),
      ),
    ],
    [
      "mcp.list",
      light(McpListParams, (params, as) =>
        params.conversationId === null
          ? forOperator(as, sessions.mcpServers({ ...params, ...as }))
          : sessions.mcpServers({ ...params, ...as }),
      ),
    ],
    [
      "mcp.restart",
      light(McpRestartParams, (params, as) =>
        params.conversationId === null
          ? forOperator(as, sessions.restartMcpServer({ ...params, ...as }))
          : sessions.restartMcpServer({ ...params, ...as }),
      ),
    ],
    // A server may be a command, so only who owns the node hands one over.
    ["mcp.add", light(McpAddParams, (params, as) => forOperator(as, sessions.addMcpServers({ ...params, ...as })))],
    ["node.tree", heavy(NoParams, (_params, as) => forOperator(as, sessions.tree))],
    [
      "node.info",
      light(NoParams, () =>
        Effect.sync(() => ({ name: "super-pi", version: service.version, pid: process.pid, methods: names })),
      ),
    ],
    ["models.list", heavy(NoParams, () => models)],
  ])
  names.push(...methods.keys())
  return methods
}
