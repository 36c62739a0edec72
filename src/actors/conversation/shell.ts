/**
 * The thin shell around the conversation machine: commits a decision, then adopts its data, then performs its actions. One per
 * incarnation of the actor; every method runs inside the actor's handlers, one at a time.
 */
import { Clock, Effect, Random } from "effect"
import { contextOf } from "../../domain/context.ts"
import type { MachineState } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import { NotFound } from "../../domain/failure.ts"
import type { SubmissionId } from "../../domain/ids.ts"
import type { Message } from "../../domain/message.ts"
import type { ModelsService } from "../../models/model.ts"
import type { CommitError } from "../../storage/errors.ts"
import type { Commit, StoreService } from "../../storage/store.ts"
import type { Workspace } from "../../tools/tool.ts"
import type { ToolsService } from "../../tools/tools.ts"
import type { Settled } from "../contract.ts"
import type { ActorContext, ActorRef, Down } from "../kernel/index.ts"
import {
  cancelTimeout,
  keep,
  type Action as MachineAction,
  next,
  nextEvent,
  postpone,
  stateTimeout,
  stop,
  type Transition,
  tell,
  timeout,
} from "../kernel/index.ts"
import { newReference, orStorageFailure, storageFailure } from "./failures.ts"
import { EventHub } from "./hub.ts"
import { IdReserve } from "./ids.ts"
import { callsJob, crashMessage, job, modelJob, prepareJob, toolJob } from "./jobs.ts"
import type { Loaded } from "./load.ts"
import type { Action, Data, Env, Job, JobEnd, MachineEvent, Reply } from "./machine/data.ts"
import { decide } from "./machine/decide.ts"
import { Draft } from "./machine/draft.ts"
import { flushLive } from "./machine/run.ts"
import type { ConversationMessage } from "./messages.ts"
import { RequestHistory } from "./request-history.ts"
import type { ConversationSettingsService } from "./settings.ts"
import { settledOf } from "./settle.ts"
import { viewOf } from "./view.ts"

/** First wait before a refused commit is tried again, doubled up to the second figure, in ms. */
const commitRetryMs = [100, 2_000] as const

export interface Services {
  readonly store: StoreService
  readonly models: ModelsService
  readonly tools: ToolsService
  readonly settings: ConversationSettingsService
}

/** What one message does to the machine. */
export type Change = Transition<MachineState, Shell, ConversationMessage>

interface RunningJob {
  readonly job: Job
  readonly ref: ActorRef<"go">
}

/** A job that is stopped is interrupted at once; its end is waited for with its finalizers. */
const jobSpec = { restart: "temporary", shutdownMs: 0 } as const

/** What ends a job in its own words; everything else ends it in its `Down`. */
const terminal: ReadonlySet<MachineEvent["type"]> = new Set([
  "prepared",
  "modelFailed",
  "responded",
  "callsPrepared",
  "toolEnded",
])

export class Shell {
  data: Data
  readonly hub: EventHub
  private readonly services: Services
  private readonly self: ActorContext<ConversationMessage>
  private readonly ids: IdReserve
  private readonly sessionId: string
  private readonly jobs = new Map<number, RunningJob>()
  /** Timers and follow-up events of the decision in progress, for the kernel's transition. */
  private followUps: Array<MachineAction<ConversationMessage>> = []
  private readonly waiters = new Map<SubmissionId, Array<Reply<Settled>>>()
  private readonly history = new RequestHistory()

  constructor(loaded: Loaded, services: Services, self: ActorContext<ConversationMessage>) {
    this.data = loaded.data
    this.services = services
    this.self = self
    this.ids = new IdReserve(services.store)
    this.sessionId = loaded.sessionId
    this.hub = new EventHub(loaded.data.conversation.id, () => this.view())
  }

  view() {
    return viewOf(this.data, this.services.settings, this.hub.newest)
  }

  /** Nothing runs, waits or watches: the actor may leave memory. */
  get idle(): boolean {
    return this.data.state === "idle" && this.waiters.size === 0 && this.hub.watcherCount === 0
  }

  /** One event through the machine. */
  handle(event: MachineEvent): Effect.Effect<Change> {
    return Effect.gen(this, function* () {
      this.forget(event)
      const env = yield* this.env(event)
      if (env === null) return keep<Shell>(this)
      const decision = decide(this.data, event, env)
      if (decision.type === "postpone") return postpone
      if (decision.commit !== null && !(yield* this.commit(decision.commit, event))) return keep<Shell>(this)
      const from = this.data.state
      this.data = decision.data
      this.followUps = []
      for (const action of decision.actions) yield* this.perform(action, env.now)
      const to = this.data.state
      if (to === from) return keep<Shell, ConversationMessage>(this, this.followUps)
      this.hub.publish({ type: "state_changed", from, to }, this.turn, env.now)
      if (to === "idle") this.followUps.push(this.hibernation())
      return next<MachineState, Shell, ConversationMessage>(to, this, this.followUps)
    })
  }

  /** Looks later whether the actor may leave memory. */
  hibernation(): MachineAction<ConversationMessage> {
    return stateTimeout(this.services.settings.idleMs, { type: "hibernate" })
  }

  /** A child ended. */
  down(down: Down): Effect.Effect<Change> {
    const running = this.jobs.get(down.ref.id)
    if (running === undefined) return Effect.succeed(keep<Shell>(this))
    this.jobs.delete(down.ref.id)
    const { reason } = down
    if (reason._tag !== "Crashed") {
      return this.handle({ type: "jobEnded", job: running.job, end: { type: "stopped" } })
    }
    const reference = newReference()
    const end: JobEnd = { type: "crashed", reference, message: crashMessage(reason.cause) }
    return Effect.logError(`job ${running.job.type} crashed`, reason.cause).pipe(
      Effect.annotateLogs({ reference, conversation_id: this.data.conversation.id }),
      Effect.zipRight(this.handle({ type: "jobEnded", job: running.job, end })),
    )
  }

  /** Answers once the submission has ended. */
  awaitSubmission(id: SubmissionId, reply: Reply<Settled>): Effect.Effect<void> {
    const { parked, queue, run } = this.data
    const open = [...queue, ...(run?.submissions ?? []), ...(parked?.submissions ?? [])].some((row) => row.id === id)
    if (open) {
      this.waiters.set(id, [...(this.waiters.get(id) ?? []), reply])
      return Effect.void
    }
    const { store } = this.services
    return orStorageFailure(
      Effect.flatMap(store.submission(id), (row) =>
        row === null || row.conversation !== this.data.conversation.id ? Effect.succeed(null) : settledOf(store, row),
      ),
    ).pipe(
      Effect.flatMap(
        (settled): Effect.Effect<Settled, Failure> =>
          settled === null ? Effect.fail(new NotFound({ what: `submission ${id}` })) : Effect.succeed(settled),
      ),
      Effect.match({ onFailure: (failure) => reply.fail(failure), onSuccess: (settled) => reply.succeed(settled) }),
    )
  }

  /** A clean stop: open tasks are left without a node, so that their next start does not count as a crash. */
  release(): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      const { run } = this.data
      if (run !== null) {
        yield* this.ids.fill(8)
        const now = yield* Clock.currentTimeMillis
        const draft = new Draft(this.data, this.envAt(now, 0))
        if (run.flushDue) flushLive(draft)
        draft.putTask({ ...draft.run.generation, node: null })
        for (const slot of run.calls) if (slot.status !== "done") draft.putTask({ ...slot.task, node: null })
        const decision = draft.done()
        if (decision.type === "go" && decision.commit !== null) yield* this.services.store.commit(decision.commit)
      }
    }).pipe(
      Effect.catchAll((error) => Effect.logWarning(`open tasks were not released: ${error.message}`)),
      Effect.zipRight(Effect.sync(() => this.hub.close())),
    )
  }

  private get turn() {
    return this.data.run?.generation.id ?? null
  }

  /** A job that spoke its last word needs no `Down`. */
  private forget(event: MachineEvent): void {
    if (!terminal.has(event.type)) return
    for (const [id, { job: known }] of this.jobs) {
      const same =
        known.type === "tool"
          ? event.type === "toolEnded" && event.task === known.task
          : "token" in event && event.token === known.token
      if (same) this.jobs.delete(id)
    }
  }

  private envAt(now: number, random: number): Env {
    const { node, policy } = this.services.settings
    return { now, ids: this.ids, node, fence: this.services.store.epoch, random, policy }
  }

  /** What the decision may know, with enough ids in reserve; null when storage refused them and the caller was told. */
  private env(event: MachineEvent): Effect.Effect<Env | null> {
    const size =
      8 +
      (this.data.run?.calls.length ?? 0) +
      this.data.queue.length +
      (event.type === "callsPrepared" ? event.verdicts.length * 2 : 0) +
      (event.type === "recover" ? event.stored.tasks.length + event.stored.submissions.length : 0)
    return Effect.gen(this, function* () {
      if (!(yield* this.stored(this.ids.fill(size), event))) return null
      return this.envAt(yield* Clock.currentTimeMillis, yield* Random.next)
    })
  }

  private commit(commit: Commit, event: MachineEvent): Effect.Effect<boolean> {
    return this.stored(this.services.store.commit(commit), event)
  }

  /**
   * Does something in the store. When it fails, a caller is told and nothing changes (false); work that nobody waits for is tried again
   * until the store is back; a fenced actor crashes, since another node has taken over.
   */
  private stored(effect: Effect.Effect<unknown, CommitError>, event: MachineEvent): Effect.Effect<boolean> {
    const attempt = (waitMs: number): Effect.Effect<boolean> =>
      Effect.catchAll(Effect.as(effect, true), (error) => {
        if (error._tag === "Fenced") return Effect.die(error)
        if ("reply" in event) {
          return Effect.map(storageFailure(error), (failure) => {
            event.reply.fail(failure)
            return false
          })
        }
        if (error._tag === "Conflict") return Effect.die(error)
        this.notice(`storage refused a commit (${error.message}); it is tried again`)
        return Effect.zipRight(Effect.sleep(waitMs), attempt(Math.min(waitMs * 2, commitRetryMs[1])))
      })
    return attempt(commitRetryMs[0])
  }

  private notice(message: string): void {
    this.hub.publish({ type: "notice", level: "warning", message }, this.turn, Date.now())
  }

  private perform(action: Action, now: number): Effect.Effect<void> {
    const { models, settings, tools } = this.services
    const { agent, context } = this.data
    switch (action.type) {
      case "publish":
        return Effect.sync(() => this.hub.publish(action.event, action.turn, now))
      case "succeed":
        return Effect.sync(() => action.reply.succeed(action.value as never))
      case "fail":
        return Effect.sync(() => action.reply.fail(action.failure))
      case "prepare": {
        const { token } = action
        const options = { token, agent, prompt: context.prompt, models, tools, settings, send: this.send }
        return this.start({ type: "prepare", token }, prepareJob(options))
      }
      case "request": {
        const { model, token } = action
        const request = {
          model,
          messages: this.requestMessages(),
          sessionId: this.sessionId,
          ...(agent.effort === undefined ? {} : { effort: agent.effort }),
          ...(agent.effort === undefined && settings.defaultEffort !== undefined
            ? { effort: settings.defaultEffort }
            : {}),
        }
        return this.start({ type: "model", token }, modelJob({ token, request, models, send: this.send }))
      }
      case "prepareCalls": {
        const { calls, token } = action
        const mode = agent.mode ?? settings.defaultMode
        return this.start({ type: "calls", token }, callsJob({ token, calls, agent, mode, tools, send: this.send }))
      }
      case "runTool": {
        const { slot } = action
        const running = toolJob({ slot, workspace: this.workspace(), tools, send: this.send })
        return this.start({ type: "tool", task: slot.task.id }, running)
      }
      case "stopJobs":
        return Effect.forEach(this.jobs.values(), (running) => this.self.fork(stop(running.ref)), { discard: true })
      case "timer":
        return this.follow(timeout(action.timer, action.ms, { type: "timer", timer: action.timer }))
      case "clearTimer":
        return this.follow(cancelTimeout(action.timer))
      case "settle": {
        const waiting = this.waiters.get(action.submission.id) ?? []
        this.waiters.delete(action.submission.id)
        return Effect.forEach(waiting, (reply) => this.awaitSubmission(action.submission.id, reply), { discard: true })
      }
      case "self":
        return this.follow(nextEvent(action.event))
    }
  }

  private requestMessages(): ReadonlyArray<Message> {
    const { messages, repairs } = this.history.of(contextOf(this.data.context))
    if (repairs.length > 0) this.notice(`the history was repaired before the request: ${repairs.join("; ")}`)
    return messages
  }

  private workspace(): Workspace {
    const { settings } = this.services
    return { root: this.data.agent.cwd ?? settings.defaultCwd, confined: settings.confined }
  }

  private readonly send = (event: MachineEvent): Effect.Effect<void> => tell(this.self.ref, event)

  /** Starts a job as a watched child. */
  private start(name: Job, run: Effect.Effect<void>): Effect.Effect<void> {
    const label = name.type === "tool" ? `tool-${name.task}` : `${name.type}-${name.token}`
    return this.self.spawn(job(name.type, run), { name: label, childSpec: jobSpec }).pipe(
      Effect.orDie,
      Effect.flatMap((ref) => {
        this.jobs.set(ref.id, { job: name, ref })
        return Effect.zipRight(this.self.watch(ref), tell(ref, "go"))
      }),
    )
  }

  private follow(action: MachineAction<ConversationMessage>): Effect.Effect<void> {
    return Effect.sync(() => void this.followUps.push(action))
  }
}
