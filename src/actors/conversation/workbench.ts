/**
 * Makes the jobs of one conversation on the ground that it stands on (hooks.ts): what needs no waiting is answered at once, anything else is an
 * Effect for a job. It owns what lives only in memory between them: resolved models, the history's check, the messages of one request.
 */
import { Deferred, Effect, FiberId } from "effect"
import type { TaskId } from "../../domain/ids.ts"
import { type Message, type ToolCallPart, text } from "../../domain/message.ts"
import { depthOf } from "../../domain/subagent.ts"
import type { HarnessesService } from "../../harness/registry.ts"
import type { ModelsService } from "../../models/model.ts"
import type { StoreReads } from "../../storage/store.ts"
import type { ToolsService } from "../../tools/tools.ts"
import { checkBudget, isBudgeted } from "./budget-check.ts"
import type { Place } from "./call-context.ts"
import { type Ground, Grounds } from "./hooks.ts"
import { judgeWithHooks } from "./hooks-calls.ts"
import { hookedModels } from "./hooks-model.ts"
import { hookedPrepareJob, type Overlay } from "./hooks-prepare.ts"
import { afterRunJob, hookJob, inputJob } from "./hooks-run.ts"
import { modelJob, type Send, toolJob } from "./jobs.ts"
import type { Action, CallSlot, Data, MachineEvent, SubmissionRow, TaskRow, Verdict } from "./machine/data.ts"
import { inputsOf, turnOf } from "./machine/run.ts"
import { judgeAll, Preparer, requestFor } from "./prepare.ts"
import { reconcileJob } from "./reconcile-job.ts"
import { RequestHistory } from "./request-history.ts"
import type { ConversationSettingsService } from "./settings.ts"
import { Workspaces } from "./workspaces.ts"

export interface WorkbenchParts {
  readonly store: StoreReads
  readonly models: ModelsService
  readonly tools: ToolsService
  readonly settings: ConversationSettingsService
  /** Null: the node has no harnesses. */
  readonly harnesses?: HarnessesService | null
}

export interface WorkbenchHost {
  readonly data: () => Data
  readonly sessionId: string
  readonly send: Send
  readonly notify: (level: "info" | "warning" | "error", message: string) => void
}

/** Puts a note before what a call says. */
const noted = (send: Send, note: string | null): Send =>
  note === null
    ? send
    : (message) => {
        if (message.type !== "toolEnded") return send(message)
        const { result } = message
        return send({ ...message, result: { ...result, output: [text(note), ...result.output] } })
      }

export class Workbench {
  private readonly parts: WorkbenchParts
  private readonly host: WorkbenchHost
  private readonly workspaces: Workspaces
  private readonly grounds: Grounds
  private readonly preparer: Preparer
  private readonly history = new RequestHistory()
  private overlay: Overlay | null = null
  /** The run whose beginning was told to the plugins. */
  private begun: TaskId | null = null
  /** Hooks of runs that ended, at work. */
  private readonly ending = new Set<Deferred.Deferred<void>>()

  constructor(parts: WorkbenchParts, host: WorkbenchHost) {
    this.parts = parts
    this.host = host
    this.preparer = new Preparer(parts.models)
    const { conversation } = host.data()
    this.workspaces = new Workspaces(parts.settings, conversation.id)
    this.grounds = new Grounds(parts.harnesses ?? null, parts.tools, parts.settings.defaultMode, {
      conversation: conversation.id,
      // A conversation of an application's task is no person's own either.
      depth: Math.max(depthOf(host.data().agent), conversation.owner === null ? 0 : 1),
      served: (agent, tools) => this.workspaces.served(agent, tools),
      workspaceOf: (agent) => this.workspaces.of(agent),
      notify: host.notify,
    })
  }

  get ground(): Ground {
    return this.grounds.for(this.host.data().agent)
  }

  /** The data as others see it: with the choices in force. */
  get view(): Data {
    const data = this.host.data()
    const { agent } = this.ground
    return agent === data.agent ? data : { ...data, agent }
  }

  /** Where this conversation's calls act. */
  get place(): Place {
    return { conversation: this.host.data().conversation.id, workspace: this.workspaces.of(this.ground.agent) }
  }

  /** What the conversation is compacted for. */
  get target() {
    return this.preparer.target(this.ground.agent)
  }

  /** The messages of the context, checked. */
  private messages(): ReadonlyArray<Message> {
    const { messages, repairs } = this.history.of(this.host.data().context)
    if (repairs.length > 0)
      this.host.notify("warning", `the history was repaired before the request: ${repairs.join("; ")}`)
    return messages
  }

  private preparation(token: number, { agent, identity, tools }: Ground) {
    const { prompt } = this.host.data().context
    return { token, agent, prompt, tools, settings: this.parts.settings, identity }
  }

  /** Prepares a request: its event, or the job that sends it. */
  prepare(token: number): MachineEvent | Effect.Effect<void> {
    const starting = this.parts.tools.source?.ready(this.topConversation) ?? null
    return starting === null ? this.prepareReady(token) : this.prepareAfter(token, starting)
  }

  private get topConversation() {
    const { agent, conversation } = this.host.data()
    return agent.subagent?.root ?? conversation.id
  }

  private prepareReady(token: number): MachineEvent | Effect.Effect<void> {
    return isBudgeted(this.host.data().agent) ? this.prepareWithin(token) : this.prepareNow(token)
  }

  /** Tools that are only just starting are waited for, within their bounds. */
  private prepareAfter(token: number, starting: Effect.Effect<void>): Effect.Effect<void> {
    return Effect.flatMap(starting, () => {
      const prepared = this.prepareReady(token)
      return Effect.isEffect(prepared) ? prepared : this.host.send(prepared)
    })
  }

  /** The budget first; where it is used up no request is made. */
  private prepareWithin(token: number): Effect.Effect<void> {
    const { send } = this.host
    const { settings, store } = this.parts
    return Effect.gen(this, function* () {
      const { model } = yield* this.target
      const { agent, conversation } = this.host.data()
      const prices = settings.prices ?? {}
      const reached = yield* checkBudget({ store, prices, conversation: conversation.id, agent, model, send })
      if (reached !== null) return yield* send({ type: "overBudget", token, detail: reached.detail })
      const prepared = this.prepareNow(token)
      yield* Effect.isEffect(prepared) ? prepared : send(prepared)
    })
  }

  private prepareNow(token: number): MachineEvent | Effect.Effect<void> {
    const { ground } = this
    const { fault, hooks } = ground
    const asks = hooks.has("beforeRequest") || hooks.has("beforeAgentStart") || this.ending.size > 0
    if (fault !== null || asks) return this.prepareWithHooks(token)
    const preparation = this.preparation(token, ground)
    return this.preparer.atOnce(preparation) ?? this.preparer.job(preparation, this.host.send)
  }

  private prepareWithHooks(token: number): Effect.Effect<void> {
    const { run } = this.host.data()
    const submissions = run?.submissions ?? []
    return hookedPrepareJob({
      token,
      turn: run === null ? 1 : turnOf(run.generation),
      settled: Effect.suspend(() => Effect.forEach(this.ending, (done) => Deferred.await(done), { discard: true })),
      begun: run !== null && this.begun === run.generation.id,
      inputs: inputsOf(submissions),
      now: () => {
        const { ground } = this
        return { ground, preparation: this.preparation(token, ground) }
      },
      messages: () => this.messages(),
      models: this.parts.models,
      began: () => {
        this.begun = run?.generation.id ?? null
      },
      overlay: (overlay) => {
        this.overlay = overlay
      },
      send: this.host.send,
    })
  }

  /** The job that asks the model. */
  request(token: number, model: string): Effect.Effect<void> {
    const { agent, runner } = this.ground
    const { overlay } = this
    const messages = overlay?.token === token ? overlay.messages : this.messages()
    const { sessionId, send } = this.host
    const request = requestFor({ model, messages, sessionId, agent, settings: this.parts.settings })
    const models = runner === null ? this.parts.models : hookedModels(this.parts.models, runner)
    return modelJob({ token, request, models, send })
  }

  /** Judges calls: the event with their verdicts, or the job that sends it. */
  judge(token: number, calls: ReadonlyArray<ToolCallPart>): MachineEvent | Effect.Effect<void> {
    const { agent, hooks, runner, tools } = this.ground
    const judging = { agent, mode: agent.mode ?? this.parts.settings.defaultMode, tools }
    const judged: ReadonlyArray<Verdict> | Effect.Effect<ReadonlyArray<Verdict>> =
      runner !== null && hooks.has("beforeTool") ? judgeWithHooks(calls, judging, runner) : judgeAll(calls, judging)
    if (!Effect.isEffect(judged)) return { type: "callsPrepared", token, verdicts: judged }
    return Effect.flatMap(judged, (verdicts) => this.host.send({ type: "callsPrepared", token, verdicts }))
  }

  /** The job that runs a call. */
  call(slot: CallSlot): Effect.Effect<void> {
    const { agent, runner, tools } = this.ground
    const job = (send: Send) => toolJob({ slot, place: this.place, tools, send, runner })
    const { run } = this.host.data()
    const first = run?.submissions[0]?.id ?? 0
    const used = run !== null && (turnOf(run.generation) > 1 || run.calls.some(({ status }) => status === "done"))
    const ready = this.workspaces.prepare(agent, first, used)
    return ready === null ? job(this.host.send) : Effect.flatMap(ready, (note) => job(noted(this.host.send, note)))
  }

  /** The conversation is idle: what was made for its task goes. */
  settled(): Effect.Effect<void> | null {
    return this.workspaces.settled(this.ground.agent)
  }

  private get judging() {
    const { agent, tools } = this.ground
    return { agent, mode: agent.mode ?? this.parts.settings.defaultMode, tools }
  }

  /** The job of hooks that the run waits for. */
  hook(action: Extract<Action, { readonly type: "hook" }>): Effect.Effect<void> {
    return hookJob(action, this.ground, this.host.send)
  }

  /** The job of the hooks of a run that ended. What the next run begins with waits for it. */
  afterRun(task: TaskRow): Effect.Effect<void> {
    const done = Deferred.unsafeMake<void>(FiberId.none)
    this.ending.add(done)
    const over = Effect.suspend(() => {
      this.ending.delete(done)
      return Deferred.succeed(done, undefined)
    })
    return Effect.ensuring(afterRunJob(task, this.ground, this.parts.store, this.host.send), over)
  }

  /** The job that reads an input. */
  read(row: SubmissionRow): Effect.Effect<void> {
    return inputJob(row, this.ground, this.judging, this.host.send)
  }

  /** The job that finds out what became of a call. */
  reconcile(slot: CallSlot): Effect.Effect<void> {
    return reconcileJob({ slot, place: this.place, tools: this.ground.tools, send: this.host.send })
  }
}
