/**
 * The methods: each decodes its parameters and asks the sessions. Whether a method is heavy (its answer may be large) decides how many of
 * them one connection runs at once.
 */

import type { Schema } from "effect"
import { Effect, Either } from "effect"
import type { SessionsService } from "../../actors/sessions.ts"
import type { AgentDocument } from "../../domain/document.ts"
import type { Failure, InvalidRequest } from "../../domain/failure.ts"
import { type RemoteRules, remoteAgent } from "../remote.ts"
import {
  AckParams,
  AwaitParams,
  CompactParams,
  ConfigureParams,
  ConversationParams,
  EffectsParams,
  ForkParams,
  ListParams,
  NoParams,
  OpenParams,
  paramsDecoder,
  QuestionsParams,
  ResetParams,
  RespondParams,
  SettleEffectParams,
  SubmissionParams,
  SubmitParams,
  UndoParams,
  UnwatchParams,
  WatchParams,
  WhyParams,
  WriteParams,
} from "./params.ts"
import type { Watches } from "./watches.ts"

/** What a server serves, and as whom. */
export interface Service {
  readonly sessions: SessionsService
  readonly version: string
  /** The models of the node, for `models.list`; without it that method is unknown. */
  readonly models?: Effect.Effect<ReadonlyArray<object>, Failure>
  /** On whose behalf every connection acts; default `local`. */
  readonly principal?: string
  /** How far callers may choose modes; default: any mode up to `auto`. */
  readonly remote?: RemoteRules
}

/** An answer; `afterwards` runs once the answer is on its way. */
export interface Answer {
  readonly result: unknown
  readonly afterwards?: Effect.Effect<void>
}

export interface Method {
  readonly heavy: boolean
  readonly run: (params: unknown) => Effect.Effect<Answer, Failure>
}

export type Methods = ReadonlyMap<string, Method>

const method =
  (heavy: boolean) =>
  <A, I>(schema: Schema.Schema<A, I>, run: (params: A) => Effect.Effect<unknown, Failure>): Method => {
    let decode: ReturnType<typeof paramsDecoder<A, I>> | null = null
    return {
      heavy,
      run: (params) =>
        Effect.suspend(() => {
          decode ??= paramsDecoder(schema)
          return Either.match(decode(params), {
            onLeft: (error: InvalidRequest): Effect.Effect<Answer, Failure> => Effect.fail(error),
            onRight: (decoded) => Effect.map(run(decoded), (result): Answer => ({ result })),
          })
        }),
    }
  }

const light = method(false)
const heavy = method(true)

/** The methods of one connection. */
export const makeMethods = (service: Service, watches: Watches): Methods => {
  const { sessions, models } = service
  const as = { principal: service.principal ?? "local" }
  const { remote = { ownMode: "auto" } } = service
  const chosen = <A extends { readonly agent: AgentDocument }>(params: A, opens: boolean) =>
    Effect.map(remoteAgent(params.agent, remote, opens), (agent) => ({ ...params, agent, ...as }))
  const names: Array<string> = []

  const watch = paramsDecoder(WatchParams)
  const methods = new Map<string, Method>([
    [
      "session.open",
      light(OpenParams, (params) => Effect.flatMap(chosen(params, params.conversationId === null), sessions.open)),
    ],
    ["session.submit", light(SubmitParams, (params) => sessions.submit({ ...params, ...as }))],
    ["session.write", light(WriteParams, (params) => sessions.write({ ...params, ...as }))],
    ["session.reset", light(ResetParams, (params) => sessions.reset({ ...params, ...as }))],
    ["session.withdraw", light(AwaitParams, (params) => sessions.withdraw({ ...params, ...as }))],
    ["session.fork", heavy(ForkParams, (params) => Effect.flatMap(chosen(params, false), sessions.fork))],
    ["session.submission", light(SubmissionParams, (params) => sessions.submission({ ...params, ...as }))],
    ["session.submissions", heavy(ConversationParams, (params) => sessions.submissions({ ...params, ...as }))],
    ["session.await", light(AwaitParams, (params) => sessions.awaitSubmission({ ...params, ...as }))],
    [
      "session.watch",
      {
        heavy: false,
        run: (params) =>
          Effect.gen(function* () {
            const target = yield* watch(params)
            const { watchId, start } = yield* watches.open({ ...target, ...as })
            return { result: { watchId }, afterwards: start }
          }),
      },
    ],
    ["session.ack", light(AckParams, (params) => watches.acknowledge(params.watchId, params.delivery))],
    ["session.unwatch", light(UnwatchParams, (params) => watches.close(params.watchId))],
    ["session.cancel", light(ConversationParams, (params) => sessions.cancel({ ...params, ...as }))],
    ["session.state", heavy(ConversationParams, (params) => sessions.state({ ...params, ...as }))],
    ["session.list", heavy(ListParams, (params) => sessions.list({ ...params, ...as }))],
    ["session.transcript", heavy(ConversationParams, (params) => sessions.transcript({ ...params, ...as }))],
    [
      "session.configure",
      light(ConfigureParams, (params) => Effect.flatMap(chosen(params, false), sessions.configure)),
    ],
    ["session.remove", light(ConversationParams, (params) => sessions.remove({ ...params, ...as }))],
    ["session.compact", light(CompactParams, (params) => sessions.compact({ ...params, ...as }))],
    ["session.retry", light(ConversationParams, (params) => sessions.retry({ ...params, ...as }))],
    ["session.questions", heavy(QuestionsParams, (params) => sessions.questions({ ...params, ...as }))],
    [
      "ui.respond",
      light(RespondParams, (params) => sessions.answer({ ...params, client: params.client ?? "rpc", ...as })),
    ],
    ["effect.list", heavy(EffectsParams, (params) => sessions.effects({ ...params, ...as }))],
    ["effect.settle", light(SettleEffectParams, (params) => sessions.settleEffect({ ...params, ...as }))],
    ["checkpoint.list", heavy(ConversationParams, (params) => sessions.checkpoints({ ...params, ...as }))],
    ["checkpoint.undo", heavy(UndoParams, (params) => sessions.undo({ ...params, ...as }))],
    ["call.why", light(WhyParams, (params) => sessions.why({ ...params, ...as }))],
    ["workspace.metadata", light(NoParams, () => sessions.harnesses)],
    ["node.tree", heavy(NoParams, () => sessions.tree)],
    [
      "node.info",
      light(NoParams, () =>
        Effect.sync(() => ({ name: "super-pi", version: service.version, pid: process.pid, methods: names })),
      ),
    ],
    ...(models === undefined ? [] : [["models.list", heavy(NoParams, () => models)] as const]),
  ])
  names.push(...methods.keys())
  return methods
}
