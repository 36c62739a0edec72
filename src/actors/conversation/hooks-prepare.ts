/**
 * Preparing a request where plugins have a say: `beforeAgentStart` once when a run begins, then `beforeRequest`. What a plugin sets of the
 * prompt stays in force until it sets it to null; the messages that it puts in place of the context's count for this request only.
 */
import { Deferred, Effect } from "effect"
import type { AgentDocument } from "../../domain/document.ts"
import type { Message, SystemMessage, UserPart } from "../../domain/message.ts"
import { diffPrompt } from "../../domain/prompt.ts"
import { HistoryCheck, validityRules } from "../../domain/validity.ts"
import { beforeAgentStart, beforeRequest, type RequestChange } from "../../harness/pipeline.ts"
import type { ModelError, ModelInfo, ModelsService } from "../../models/model.ts"
import { ModelRejected } from "../../models/model.ts"
import type { Ground } from "./hooks.ts"
import type { Send } from "./jobs.ts"
import type { MachineEvent, Reply } from "./machine/data.ts"
import { type Preparation, promptNow } from "./prepare.ts"

/** The messages of one request, where they are not those of the context. */
export interface Overlay {
  readonly token: number
  readonly messages: ReadonlyArray<Message>
}

export interface HookedPreparation {
  readonly token: number
  /** Which turn of its run it is, from 1, and whether the run's beginning has been told to the plugins already. */
  readonly turn: number
  readonly begun: boolean
  /** What the run answers. */
  readonly inputs: ReadonlyArray<ReadonlyArray<UserPart>>
  /** What it is prepared from, as it is when asked. */
  readonly now: () => { readonly ground: Ground; readonly preparation: Preparation }
  readonly messages: () => ReadonlyArray<Message>
  readonly models: ModelsService
  /** Ends when the hooks of the run before are done: what they change is there when this one begins. */
  readonly settled: Effect.Effect<void>
  readonly began: () => void
  readonly overlay: (overlay: Overlay | null) => void
  readonly send: Send
}

/** Names of the sections that the engine itself writes. */
const ownSections: ReadonlySet<string> = new Set(["identity", "environment", "instructions"])

/** Changes `pi.agent` and waits until it is committed. */
const configure = (send: Send, agent: AgentDocument): Effect.Effect<void> =>
  Effect.gen(function* () {
    const done = yield* Deferred.make<void>()
    const answer = () => void Deferred.unsafeDone(done, Effect.void)
    const reply: Reply<void> = { succeed: answer, fail: answer }
    yield* send({ type: "configure", agent, reply })
    yield* Deferred.await(done)
  })

/** Where the context's own rule would put the system message: first, where only user messages precede it. */
const withSystem = (messages: ReadonlyArray<Message>, system: SystemMessage | null): ReadonlyArray<Message> => {
  if (system === null) return messages
  return messages.every((message) => message.role === "user") ? [system, ...messages] : [...messages, system]
}

const resolve = (models: ModelsService, name: string | undefined): Effect.Effect<ModelInfo, ModelError> =>
  Effect.flatMap(name === undefined ? models.defaultModel : Effect.succeed(name), (model) => models.resolve(model))

/** The event of a prepared request. */
const prepared = (
  { now, overlay, token }: HookedPreparation,
  model: ModelInfo,
  change: RequestChange | null,
): MachineEvent => {
  const { preparation } = now()
  const { prompt } = preparation
  const wanted = promptNow(preparation, change?.tools ?? null)
  const sections = new Map(wanted.sections)
  for (const [name, text] of prompt.sections) {
    if (!sections.has(name) && !ownSections.has(name)) sections.set(name, text)
  }
  for (const [name, text] of change?.sections ?? []) {
    if (text === null) sections.delete(name)
    else sections.set(name, text)
  }
  const system = diffPrompt(prompt, { sections, tools: wanted.tools })
  const messages = change?.messages ?? null
  const checked = messages === null ? null : new HistoryCheck(validityRules.strict).append(messages).messages
  overlay(checked === null ? null : { token, messages: withSystem(checked, system) })
  return { type: "prepared", token, model: model.id, window: model.contextWindow, system }
}

/** The job. Its last word is `prepared` or `modelFailed`. */
export const hookedPrepareJob = (options: HookedPreparation): Effect.Effect<void> => {
  const { begun, inputs, models, now, send, token, turn } = options
  const program = Effect.gen(function* () {
    const { fault, hooks, runner } = now().ground
    if (fault !== null) {
      return yield* new ModelRejected({ model: "", status: null, detail: fault.message })
    }
    yield* options.settled
    if (runner !== null && turn === 1 && !begun && hooks.has("beforeAgentStart")) {
      const agent = yield* beforeAgentStart(runner, inputs)
      if (agent !== null) yield* configure(send, agent)
      options.began()
    }
    const { ground, preparation } = now()
    const model = yield* resolve(models, ground.agent.model)
    if (ground.runner === null || !ground.hooks.has("beforeRequest")) return prepared(options, model, null)
    const offered = promptNow(preparation, null)
    const change = yield* beforeRequest(ground.runner, {
      messages: options.messages(),
      sections: { ...Object.fromEntries(preparation.prompt.sections), ...Object.fromEntries(offered.sections) },
      tools: [...offered.tools.keys()],
      model: model.id,
      turn,
    })
    const keeps = change.model === null || model.fixed === true
    return prepared(options, keeps ? model : yield* resolve(models, change.model), change)
  })
  return Effect.matchEffect(program, {
    onFailure: (error: ModelError) => send({ type: "modelFailed", token, error }),
    onSuccess: send,
  })
}
