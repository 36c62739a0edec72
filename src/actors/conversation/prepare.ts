/**
 * Preparing: which model a request goes to and what changed of the prompt; what may become of each call. Where everything is at hand, it is
 * done at once in the machine's own handler; a job is started only for what has to wait (a key command, a tool whose check asks somebody).
 */
import { Effect, Either } from "effect"
import type { AgentDocument, ExecutionMode } from "../../domain/document.ts"
import type { Json } from "../../domain/json.ts"
import type { Message, ToolCallPart } from "../../domain/message.ts"
import { blockReason } from "../../domain/permissions.ts"
import { diffPrompt, type Prompt } from "../../domain/prompt.ts"
import { promptFor } from "../../harness/prompt.ts"
import type { ModelError, ModelInfo, ModelRequest, ModelsService } from "../../models/model.ts"
import type { InvalidArguments, Tool } from "../../tools/tool.ts"
import type { ToolsService } from "../../tools/tools.ts"
import type { Send } from "./jobs.ts"
import type { Target } from "./machine/compact.ts"
import type { MachineEvent, Verdict } from "./machine/data.ts"
import type { ConversationSettingsService } from "./settings.ts"

/** What a request is prepared from. */
export interface Preparation {
  readonly token: number
  readonly agent: AgentDocument
  readonly prompt: Prompt
  readonly tools: ToolsService
  readonly settings: ConversationSettingsService
  /** The core of the prompt; null: the node's own. */
  readonly identity: string | null
}

/** The prompt as it should be; `only` names the tools to offer of those that the choices offer, null all of them. */
export const promptNow = (
  { agent, identity, settings, tools }: Preparation,
  only: ReadonlyArray<string> | null,
): Prompt => {
  const offered = tools.list
    .filter(({ spec }) => (agent.tools?.includes(spec.name) ?? true) && (only?.includes(spec.name) ?? true))
    .map((tool) => tool.spec)
  return promptFor({
    agent,
    mode: agent.mode ?? settings.defaultMode,
    cwd: agent.cwd ?? settings.defaultCwd,
    platform: settings.platform,
    tools: offered,
    identity,
  })
}

const prepared = (preparation: Preparation, model: ModelInfo): MachineEvent => ({
  type: "prepared",
  token: preparation.token,
  model: model.id,
  window: model.contextWindow,
  system: diffPrompt(preparation.prompt, promptNow(preparation, null)),
})

/** Prepares the requests of one conversation. A name that was resolved once stays so: its provider says itself when its key is gone. */
export class Preparer {
  private readonly models: ModelsService
  private readonly resolved = new Map<string, ModelInfo>()

  constructor(models: ModelsService) {
    this.models = models
  }

  /** The event of a preparation that needs no waiting, or null. */
  atOnce(preparation: Preparation): MachineEvent | null {
    const model = this.resolved.get(preparation.agent.model ?? "")
    return model === undefined ? null : prepared(preparation, model)
  }

  /** What a conversation is compacted for. A model that cannot be asked now has a name at most. */
  target(agent: AgentDocument): Effect.Effect<Target> {
    const name = agent.model ?? ""
    const known = this.resolved.get(name)
    const targetOf = ({ contextWindow, id }: ModelInfo): Target => ({ model: id, window: contextWindow })
    if (known !== undefined) return Effect.succeed(targetOf(known))
    const resolved = Effect.flatMap(
      agent.model === undefined ? this.models.defaultModel : Effect.succeed(agent.model),
      (model) => this.models.resolve(model),
    )
    return Effect.match(resolved, { onFailure: () => ({ model: name, window: null }), onSuccess: targetOf })
  }

  /** The job: resolves the model and finds what changed of the prompt. */
  job(preparation: Preparation, send: Send): Effect.Effect<void> {
    const { agent, token } = preparation
    return Effect.flatMap(agent.model === undefined ? this.models.defaultModel : Effect.succeed(agent.model), (name) =>
      this.models.resolve(name),
    ).pipe(
      Effect.flatMap((model) => {
        this.resolved.set(agent.model ?? "", model)
        return send(prepared(preparation, model))
      }),
      Effect.catchAll((error: ModelError) => send({ type: "modelFailed", token, error })),
    )
  }
}

/** What calls are judged by. */
export interface Judging {
  readonly agent: AgentDocument
  readonly mode: ExecutionMode
  readonly tools: ToolsService
}

/** Each call's verdict in call order: its tool, arguments and policy checked. The verdicts themselves where no check has to wait. */
export const judgeAll = (
  calls: ReadonlyArray<ToolCallPart>,
  judging: Judging,
): ReadonlyArray<Verdict> | Effect.Effect<ReadonlyArray<Verdict>> => {
  const judged = calls.map((call) => judge(call, judging))
  const verdicts = judged.filter((one): one is Verdict => !Effect.isEffect(one))
  return verdicts.length === judged.length
    ? verdicts
    : Effect.forEach(judged, (one) => (Effect.isEffect(one) ? one : Effect.succeed(one)))
}

const refuse = (reason: string): Verdict => ({ type: "refuse", reason })

/** The tool of a call, or the refusal where it is not offered. */
export const offeredTool = (call: ToolCallPart, { agent, tools }: Judging): Tool | Verdict => {
  const tool = tools.get(call.name)
  if (tool !== undefined && (agent.tools === undefined || agent.tools.includes(call.name))) return tool
  const names = tools.list
    .map((known) => known.spec.name)
    .filter((name) => agent.tools === undefined || agent.tools.includes(name))
  return refuse(`There is no tool "${call.name}"; the tools are ${names.join(", ")}.`)
}

/** The refusal of a call whose arguments are wrong. */
export const invalid = (call: ToolCallPart, error: InvalidArguments): Verdict =>
  refuse(`Invalid arguments for ${call.name}:\n${error.detail}`)

/** A call that runs with these decoded arguments. */
export const runVerdict = ({ execution, replay, whenInterrupted = "settled" }: Tool, args: Json) =>
  ({ type: "run", args, replay, whenInterrupted, execution }) as const

const judge = (call: ToolCallPart, judging: Judging): Verdict | Effect.Effect<Verdict> => {
  const { mode } = judging
  const tool = offeredTool(call, judging)
  if ("type" in tool) return tool
  const blocked = blockReason(mode, call.name, tool.effects)
  if (blocked !== null) return refuse(blocked)
  const failed = (error: InvalidArguments) => invalid(call, error)
  const run = (args: Json): Verdict => {
    const { effectsOf } = tool
    const beyond = effectsOf === undefined ? null : blockReason(mode, call.name, effectsOf(args))
    return beyond === null ? runVerdict(tool, args) : refuse(beyond)
  }
  const decoded = tool.decode(call.arguments)
  if (!Either.isEither(decoded)) return Effect.match(decoded, { onFailure: failed, onSuccess: run })
  // An Either of these two is what the Effect's type says.
  return Either.match(decoded as Either.Either<Json, InvalidArguments>, { onLeft: failed, onRight: run })
}

/** The request that a prepared one becomes. */
export const requestFor = (options: {
  readonly model: string
  readonly messages: ReadonlyArray<Message>
  readonly sessionId: string
  readonly agent: AgentDocument
  readonly settings: ConversationSettingsService
}): ModelRequest => {
  const { agent, messages, model, sessionId, settings } = options
  const effort = agent.effort ?? settings.defaultEffort
  return { model, messages, sessionId, ...(effort === undefined ? {} : { effort }) }
}
