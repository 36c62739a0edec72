/**
 * The thin shell around the conversation machine: commits a decision, then adopts its data, then performs its actions. One per
 * incarnation of the actor; every method runs inside the actor's handlers, one at a time.
 */
import { type Clock, Effect, identity } from "effect"
import type { MachineState } from "../../domain/event.ts"
import type { SubmissionId, TaskId } from "../../domain/ids.ts"
import { annotateRest } from "../../observability/log-context.ts"
import type { CommitError } from "../../storage/errors.ts"
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
import { tend } from "./children-port.ts"
import { compactionJob } from "./compaction-job.ts"
import { newReference } from "./failures.ts"
import { EventHub } from "./hub.ts"
import { IdReserve } from "./ids.ts"
import { crashMessage, startJob } from "./jobs.ts"
import { isLastWord, lastWords, meantBy } from "./last-word.ts"
import type { Loaded } from "./load.ts"
import type { Action, Data, Decision, Env, Job, JobEnd, MachineEvent, Reply } from "./machine/data.ts"
import { decide } from "./machine/decide.ts"
import { Draft } from "./machine/draft.ts"
import { release } from "./machine/release.ts"
import type { ConversationMessage } from "./messages.ts"
import { Observed } from "./observe.ts"
import { observedModels } from "./observe-models.ts"
import { streamed, withActions } from "./pieces.ts"
import type { Services } from "./services.ts"
import { heldUpIn, justSettled, settledIn } from "./settle.ts"
import { stored } from "./stored.ts"
import { ToldChoices } from "./told-choices.ts"
import { viewOf } from "./view.ts"
import { Workbench } from "./workbench.ts"

/** What one message does to the machine. */
export type Change = Transition<MachineState, Shell, ConversationMessage>

interface RunningJob {
  readonly job: Job
  readonly ref: ActorRef<"go">
}

export class Shell {
  data: Data
  readonly hub: EventHub
  private readonly services: Services
  private readonly self: ActorContext<ConversationMessage>
  private readonly ids: IdReserve
  private readonly jobs = new Map<number, RunningJob>()
  /** Timers and follow-up events of the decision in progress, for the kernel's transition. */
  private followUps: Array<MachineAction<ConversationMessage>> = []
  private readonly waiters = new Map<SubmissionId, Array<Reply<Settled>>>()
  readonly workbench: Workbench
  private readonly toldChoices: ToldChoices
  /** Null where nobody looks. */
  readonly observed: Observed | null

  private readonly clock: Clock.Clock
  /** Draws the jitter of a backoff, in [0, 1). */
  private readonly random: () => number

  constructor(loaded: Loaded, services: Services, self: ActorContext<ConversationMessage>) {
    this.clock = services.clock
    this.random = services.random
    this.data = loaded.data
    this.self = self
    this.ids = new IdReserve(services.store)
    this.hub = new EventHub(loaded.data.conversation.id, this.clock.unsafeCurrentTimeMillis(), () => this.view())
    const { sessionId } = loaded
    const { notice: notify, send } = this
    const { watching } = services
    this.observed = watching === null ? null : new Observed(watching, loaded.data.conversation.id)
    this.hub.onWatchers = watching?.observer?.watchers ?? null
    const { conversation } = loaded.data
    const asked = { conversation: conversation.id, propagate: services.settings.traceModels === true }
    this.services =
      watching === null ? services : { ...services, models: observedModels(services.models, watching, asked) }
    this.toldChoices = new ToldChoices(this.services)
    this.workbench = new Workbench(this.services, { data: () => this.data, sessionId, send, notify })
  }

  view() {
    return viewOf(this.workbench.view, this.services, this.hub.newest)
  }

  /** Servers that work for this conversation alone are ended. */
  get leaveTools(): Effect.Effect<void> {
    return this.services.tools.source?.leave(this.data.conversation.id) ?? Effect.void
  }

  /** Nothing runs, waits or watches: the actor may leave memory. */
  get idle(): boolean {
    const { compactions, inputCalls = [], reading = [], state } = this.data
    const busy = compactions.length + inputCalls.length + reading.length
    return state === "idle" && busy === 0 && this.waiters.size === 0 && this.hub.watcherCount === 0
  }

  /** One event through the machine. An event that writes nothing and starts nothing is done at once, without a suspension. */
  handle(event: MachineEvent): Effect.Effect<Change> {
    this.forget(event)
    if (this.ids.covers(this.data, event)) return this.decide(event)
    return this.stored(this.ids.cover(this.data, event), event, () => this.decide(event))
  }

  /** Events that came together, in order: pieces of an answer at once, the first of another kind, then the rest. */
  handleAll(events: ReadonlyArray<MachineEvent>): Effect.Effect<Change> {
    const actions: Array<MachineAction<ConversationMessage>> = []
    let at = 0
    for (let event = events[at]; event !== undefined && streamed.has(event.type); event = events[++at]) {
      actions.push(...this.piece(event))
    }
    const other = events[at]
    if (other === undefined) return Effect.succeed(keep<Shell, ConversationMessage>(this, actions))
    const rest = events.slice(at + 1)
    return Effect.map(this.handle(other), (change) =>
      withActions(change, actions, rest.length === 0 ? [] : [nextEvent({ type: "parts", events: rest })]),
    )
  }

  /** A piece of an answer: nothing to commit, at most a timer to start. */
  private piece(event: MachineEvent): ReadonlyArray<MachineAction<ConversationMessage>> {
    const env = this.envAt(this.clock.unsafeCurrentTimeMillis())
    const decision = decide(this.data, event, env)
    if (decision.type === "postpone" || decision.commit !== null)
      throw new Error(`${event.type} is no piece of an answer`)
    this.data = decision.data
    this.followUps = []
    for (const action of decision.actions) this.perform(action, env.now)
    return this.followUps
  }

  private decide(event: MachineEvent): Effect.Effect<Change> {
    const env = this.envAt(this.clock.unsafeCurrentTimeMillis())
    const decision = decide(this.data, event, env)
    if (decision.type === "postpone") return Effect.succeed(postpone)
    const { commit } = decision
    if (commit === null) return this.adopt(decision, event, env.now)
    // Uninterruptible: what is committed is adopted, or a clean stop would write older rows over it.
    const adopted = Effect.uninterruptible(
      Effect.map(this.services.store.commit(commit), () => {
        this.data = decision.data
      }),
    )
    const from = this.data.state
    return this.stored(adopted, event, () => this.act(decision, event, from, env.now))
  }

  private adopt(decision: Go, event: MachineEvent, now: number): Effect.Effect<Change> {
    const from = this.data.state
    this.data = decision.data
    return this.act(decision, event, from, now)
  }

  /** Performs the actions of an adopted decision, in order. */
  private act({ actions }: Go, event: MachineEvent, from: MachineState, now: number): Effect.Effect<Change> {
    this.observed?.decided(this.data, actions, event.type === "recover" || event.type === "retry")
    this.followUps = []
    const later: Array<Effect.Effect<void>> = []
    for (const action of actions) {
      const effect = this.perform(action, now)
      if (effect !== null) later.push(effect)
    }
    const choices = this.toldChoices.news(this.data, this.workbench.ground.agent)
    if (choices !== null) this.hub.publish({ type: "session_changed", ...choices }, this.turn, now)
    const to = this.data.state
    if (to !== from) {
      this.hub.publish({ type: "state_changed", from, to }, this.turn, now)
      if (to === "idle") {
        this.followUps.push(this.hibernation())
        const cleared = this.workbench.settled()
        if (cleared !== null) later.push(cleared)
      }
      if (to === "idle" && from !== "recovering") this.services.settings.onSettled?.(this.data.conversation.id)
    }
    const change: Change =
      to === from
        ? keep<Shell, ConversationMessage>(this, this.followUps)
        : next<MachineState, Shell, ConversationMessage>(to, this, this.followUps)
    return later.length === 0
      ? Effect.succeed(change)
      : Effect.as(Effect.forEach(later, identity, { discard: true }), change)
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

  /** Answers once the submission has ended, or at once where a parked run holds it up. */
  awaitSubmission(id: SubmissionId, reply: Reply<Settled>): Effect.Effect<void> {
    const heldUp = heldUpIn(this.data, id)
    if (heldUp !== null) return Effect.sync(() => reply.succeed(heldUp))
    const { queue, run } = this.data
    if ([...queue, ...(run?.submissions ?? [])].some((row) => row.id === id)) {
      this.waiters.set(id, [...(this.waiters.get(id) ?? []), reply])
      return Effect.void
    }
    return Effect.match(settledIn(this.services.store, this.data.conversation.id, id), {
      onFailure: (failure) => reply.fail(failure),
      onSuccess: (settled) => reply.succeed(settled),
    })
  }

  /** A clean stop: open tasks are left without a node, so that their next start does not count as a crash. */
  release(): Effect.Effect<void> {
    return Effect.gen(this, function* () {
      yield* this.ids.fill(this.data.run === null ? 0 : 8)
      const commit = release(new Draft(this.data, this.envAt(this.clock.unsafeCurrentTimeMillis())))
      if (commit !== null) yield* this.services.store.commit(commit)
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
    if (!lastWords.has(event.type)) return
    for (const [id, { job: known }] of this.jobs) {
      if (isLastWord(event, known)) this.jobs.delete(id)
    }
  }

  private envAt(now: number): Env {
    const { node, policy } = this.services.settings
    return {
      now,
      ids: this.ids,
      node,
      fence: this.services.store.epoch,
      random: this.random,
      policy,
      answerable: this.hub.answerable,
      hooks: this.workbench.ground.hooks,
      trace: this.observed?.trace,
    }
  }

  /** Does something in the store, and then goes on. */
  private stored(
    effect: Effect.Effect<unknown, CommitError>,
    event: MachineEvent,
    goOn: () => Effect.Effect<Change>,
  ): Effect.Effect<Change> {
    const warn = (message: string): void => this.notice("warning", message)
    return stored(effect, { event, goOn, unchanged: () => keep<Shell>(this), warn })
  }

  private readonly notice = (level: "info" | "warning" | "error", message: string): void => {
    this.hub.publish({ type: "notice", level, message }, this.turn, this.clock.unsafeCurrentTimeMillis())
  }

  /** Does what needs no suspension at once; gives the rest as an Effect. */
  private perform(action: Action, now: number): Effect.Effect<void> | null {
    const { settings } = this.services
    switch (action.type) {
      case "publish":
        this.hub.publish(action.event, action.turn, now)
        return null
      case "succeed":
        // The machine pairs every reply with the value of its request.
        action.reply.succeed(action.value as never)
        return null
      case "fail":
        action.reply.fail(action.failure)
        return null
      case "prepare":
        return this.begin({ type: "prepare", token: action.token }, this.workbench.prepare(action.token))
      case "request":
        return this.start({ type: "model", token: action.token }, this.workbench.request(action.token, action.model))
      case "prepareCalls":
        return this.begin({ type: "calls", token: action.token }, this.workbench.judge(action.token, action.calls))
      case "runTool":
        return this.start({ type: "tool", task: action.slot.task.id }, this.workbench.call(action.slot))
      case "reconcile":
        return this.start({ type: "reconcile", task: action.slot.task.id }, this.workbench.reconcile(action.slot))
      case "compact": {
        const { compaction } = action
        const { runner } = this.workbench.ground
        const job = { compaction, data: this.data, services: this.services, send: this.send, runner }
        const running = compactionJob(job)
        return this.start({ type: "compaction", task: compaction.task.id }, running)
      }
      case "hurryCompaction":
        return settings.compactionSlots?.hurry(action.task) ?? null
      case "stopJobs":
      case "stopCalls":
      case "stopCompaction":
        return Effect.forEach(meantBy(action, this.jobs), ({ ref }) => this.self.fork(stop(ref)), { discard: true })
      case "hook":
        return this.start({ type: "hook", token: action.token }, this.workbench.hook(action))
      case "afterRun":
        return this.start({ type: "afterRun", task: action.task.id }, this.workbench.afterRun(action.task))
      case "readInput":
        return this.start({ type: "input", submission: action.row.id }, this.workbench.read(action.row))
      case "stopChildren":
      case "checkChildren":
        return Effect.forEach(tend(action, settings.children, this.send), (one) => this.self.fork(one), {
          discard: true,
        })
      case "timer":
        this.followUps.push(timeout(action.timer, action.ms, { type: "timer", timer: action.timer }))
        return null
      case "clearTimer":
        this.followUps.push(cancelTimeout(action.timer))
        return null
      case "settle": {
        const waiting = this.waiters.get(action.submission.id)
        if (waiting === undefined) return null
        this.waiters.delete(action.submission.id)
        const settled = justSettled(this.data, action.submission)
        if (settled !== null) {
          for (const reply of waiting) reply.succeed(settled)
          return null
        }
        return Effect.forEach(waiting, (reply) => this.awaitSubmission(action.submission.id, reply), { discard: true })
      }
      case "self":
        this.followUps.push(nextEvent(action.event))
        return null
    }
  }

  private readonly send = (event: ConversationMessage): Effect.Effect<void> => tell(this.self.ref, event)

  /** Goes on with an event at once, or starts the job that sends it. */
  private begin(name: Job, next: MachineEvent | Effect.Effect<void>): null {
    if (Effect.isEffect(next)) return this.start(name, next)
    this.followUps.push(nextEvent(next))
    return null
  }

  /** What a job works for. */
  private taskOf(name: Job): TaskId | null {
    return "task" in name ? name.task : this.turn
  }

  /** Starts a job as a watched child. */
  private start(name: Job, run: Effect.Effect<void>): null {
    const seen = this.observed === null ? run : this.observed.under(run)
    const logged = this.services.logs ? Effect.zipRight(annotateRest("task_id", this.taskOf(name)), seen) : seen
    const ref = startJob(this.self, name, logged)
    if (ref !== null) this.jobs.set(ref.id, { job: name, ref })
    return null
  }
}

type Go = Extract<Decision, { readonly type: "go" }>
