/**
 * Drives the pure machine without a clock, a model or a store: commits go to a map, jobs wait in a list until the test lets them end. It
 * checks after every commit that records only move along legal transitions, and can "kill" the process at any point: everything but
 * the committed rows is forgotten, and the machine recovers from them.
 */

import {
  type Action,
  type AskFirst,
  type CallSlot,
  type Compaction,
  type Data,
  defaultPolicy,
  type Env,
  type Job,
  type MachineEvent,
  type Policy,
  type Reply,
} from "../../src/actors/conversation/machine/data.ts"
import { decide } from "../../src/actors/conversation/machine/decide.ts"
import { inputOf } from "../../src/actors/conversation/machine/place.ts"
import { contextOf, contextState } from "../../src/domain/context.ts"
import type { Conversation } from "../../src/domain/conversation.ts"
import type { AgentDocument, DocumentRecord, LiveDocument } from "../../src/domain/document.ts"
import type { EffectAnswer } from "../../src/domain/effect.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { EventBody } from "../../src/domain/event.ts"
import type { ConversationId, DocumentId, EntryId, JobId, Seq, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import type { ToolCallPart, UserPart } from "../../src/domain/message.ts"
import { text, textOf } from "../../src/domain/message.ts"
import { type QuestionAnswer, questionTimeoutMs } from "../../src/domain/question.ts"
import type { SubagentEnd } from "../../src/domain/subagent.ts"
import type { Submission, WhenBusy } from "../../src/domain/submission.ts"
import type { Task } from "../../src/domain/task.ts"
import { estimateMessages } from "../../src/domain/token-estimate.ts"
import { type EntryDraft, resetDraft } from "../../src/domain/write.ts"
import type { HookName } from "../../src/harness/plugin.ts"
import type { ModelError } from "../../src/models/model.ts"
import { ContextOverflow, ModelRejected, ModelTransient } from "../../src/models/model.ts"
import type { Commit, Unstamped } from "../../src/storage/store.ts"
import type { ToolControl } from "../../src/tools/tool.ts"

const conversation = 1 as ConversationId

export type PendingJob =
  | { readonly type: "prepare"; readonly token: number }
  | { readonly type: "model"; readonly token: number }
  | { readonly type: "calls"; readonly token: number; readonly calls: ReadonlyArray<ToolCallPart> }
  | { readonly type: "tool"; readonly slot: CallSlot; happened: boolean }
  | { readonly type: "reconcile"; readonly slot: CallSlot }
  | { readonly type: "compaction"; readonly compaction: Compaction }
  | Extract<Action, { readonly type: "hook" | "afterRun" | "readInput" }>

/** What a caller was told. */
export interface Answer {
  readonly kind: string
  readonly ok: boolean
  readonly value: unknown
}

const order = ["pending", "running", "waiting", "sleeping", "completing", "terminal"]

/** Status changes that a task row may make in one commit; `pending → terminal` is a call that never started. */
const legal = new Set([
  "pending>running",
  "pending>terminal",
  "pending>waiting",
  "pending>pending",
  "running>running",
  "running>waiting",
  "running>sleeping",
  "running>terminal",
  "running>pending",
  "waiting>waiting",
  "waiting>running",
  "waiting>terminal",
  // Parked, because what it waited for took the process along too often.
  "waiting>pending",
  "sleeping>running",
  "sleeping>sleeping",
  "sleeping>terminal",
])

/** A field that is there only with a value. */
const optional = <K extends string, A>(key: K, value: A | undefined): { readonly [_ in K]?: A } =>
  value === undefined ? {} : ({ [key]: value } as { readonly [_ in K]: A })

/** The process died around a commit. */
export class Died extends Error {}

/** What the result of a tool asks for, by its name. */
const controlOf = (name: string): ToolControl | undefined =>
  name.includes("delegate")
    ? {
        await: {
          orders: [
            { role: "scout", task: "look", context: null },
            { role: "worker", task: "build", context: "with care" },
          ],
          policy: name.includes("fast") ? "fail_fast" : "all",
          timeoutMs: 1_000,
          maxDepth: 1,
        },
      }
    : name.includes("store")
      ? { store: { title: "next", summary: "so far", goal: "go on" } }
      : plainControlOf(name)

const plainControlOf = (name: string): ToolControl | undefined =>
  name.includes("handoff")
    ? { handoff: `note of ${name}` }
    : name.includes("end")
      ? { terminate: true }
      : name.includes("offer")
        ? { addTools: ["extra"] }
        : undefined

export class Driver {
  data: Data
  readonly entries: Array<Entry> = []
  readonly tasks = new Map<TaskId, Task>()
  readonly submissions = new Map<SubmissionId, Submission>()
  readonly documents = new Map<DocumentId, DocumentRecord>()
  jobs: Array<PendingJob> = []
  timers = new Set<string>()
  readonly events: Array<EventBody> = []
  readonly answers: Array<Answer> = []
  /** Task ids of calls that began, in order; a task that appears twice was run again. */
  readonly started: Array<{ readonly task: TaskId; readonly replay: string; readonly reconciles: boolean }> = []
  readonly settled: Array<SubmissionId> = []
  /** How often the effect of each unsafe call happened outside, by its effect id. */
  readonly world = new Map<string, number>()
  /** Tasks whose job ended without a result while the process lived on. */
  readonly broken = new Set<TaskId>()
  /** Jobs of subagents, as the queue has them: they outlive the process, and one that a process began is lost with it. */
  childJobs: Array<{ readonly task: TaskId; readonly job: number; begun: boolean }> = []
  /** Subagents whose conversations the machine asked to stop in this life. */
  readonly stopped = new Set<TaskId>()
  /** Conversations that came into being. */
  readonly born: Array<Unstamped<Conversation>> = []
  /** Tokens of the model's window; null: everything fits. */
  window: number | null = null
  /** What the model says. */
  said = "said"
  /** The process dies around this commit, counted from 1: whatever was called then throws {@link Died}, and `kill` begins the next life. */
  dying: { readonly commit: number; readonly when: "before" | "after" } | null = null
  now = 1_000
  seq = 0
  commits = 0
  /** Whether a client is connected that can answer. */
  answerable = true
  /** Why calls whose name has "ask" in it are asked about, and what an answer "always" keeps. */
  asks: Omit<AskFirst, "title"> = { reason: "It has effects." }
  private ids = 0
  private draws = 1
  private readonly policy: Policy

  /** What plugins did after runs, by the run's last generation, and the commands that they want run before an input. */
  readonly afterRuns: Array<TaskId> = []
  commands: ReadonlyArray<string> = []
  /** What is told of inputs that begin with "/": plugins say that they become the instructions, and ask no model. */
  settles = "changed"
  /** How often plugins still have a run go on. */
  continues = 0
  private readonly hooks: ReadonlySet<HookName>

  constructor(policy: Partial<Policy> = {}, hooks: ReadonlyArray<HookName> = []) {
    this.hooks = new Set(hooks)
    this.policy = { ...defaultPolicy, ...policy }
    this.data = this.load()
    this.recover()
  }

  private load(): Data {
    const agent = [...this.documents.values()].find((record) => record.kind === "pi.agent")
    const documents: Record<string, DocumentId> = {}
    for (const record of this.documents.values()) documents[record.kind] = record.id
    return {
      state: "recovering",
      conversation: {
        id: conversation,
        parent: null,
        owner: null,
        principal: "local",
        title: null,
        createdAt: 0,
        updatedAt: 0,
      },
      agent: (agent?.value as AgentDocument | undefined) ?? {},
      documents,
      written: {},
      usage: { models: {} },
      context: contextState(this.entries),
      entryCount: this.entries.length,
      queue: [],
      run: null,
      parked: null,
      cancels: [],
      compactions: [],
      compactionFailure: this.live()?.compactionFailure ?? null,
      questions: [],
    }
  }

  private live(): LiveDocument | null {
    const record = [...this.documents.values()].find((one) => one.kind === "pi.live")
    return (record?.value as LiveDocument | undefined) ?? null
  }

  private recover(): void {
    const open = [...this.tasks.values()].filter((task) => task.status !== "terminal")
    const submissions = [...this.submissions.values()].filter(
      (row) => row.status === "queued" || row.status === "placed",
    )
    const results = new Set<string>()
    for (const entry of this.entries) for (const m of entry.model) if (m.role === "tool") results.add(m.callId)
    this.send({
      type: "recover",
      stored: {
        tasks: open,
        submissions,
        live: this.live(),
        results,
        batch: this.entries.findLast((entry) => entry.kind === "pi.assistant") ?? null,
      },
      replayOf: (tool) => (tool.startsWith("safe") ? "safe" : "unsafe"),
      reconciles: (tool) => tool.startsWith("check"),
    })
  }

  /** The process dies: memory is gone, the committed rows stay. */
  kill(): void {
    this.jobs = []
    this.childJobs = this.childJobs.filter((job) => !job.begun)
    this.stopped.clear()
    this.timers.clear()
    this.data = this.load()
    this.recover()
  }

  send(event: MachineEvent): void {
    const id =
      <T>(): (() => T) =>
      () =>
        ++this.ids as T
    const env: Env = {
      now: this.now++,
      ids: {
        entry: id<EntryId>(),
        task: id<TaskId>(),
        submission: id<SubmissionId>(),
        document: id<DocumentId>(),
        job: id<JobId>(),
        conversation: id<ConversationId>(),
      },
      node: "test",
      fence: 1,
      random: () => {
        this.draws = (this.draws * 16_807) % 2_147_483_647
        return this.draws / 2_147_483_647
      },
      policy: this.policy,
      answerable: this.answerable,
      hooks: this.hooks,
    }
    const decision = decide(this.data, event, env)
    if (decision.type === "postpone") throw new Error(`${event.type} postponed in ${this.data.state}`)
    const dies = decision.commit !== null && this.dying?.commit === this.commits + 1 ? this.dying.when : null
    if (dies === "before") throw new Died()
    if (decision.commit !== null) this.commit(decision.commit)
    if (dies === "after") throw new Died()
    this.data = decision.data
    for (const action of decision.actions) this.perform(action)
  }

  private commit(commit: Commit): void {
    this.commits++
    const seq = ++this.seq as Seq
    this.born.push(...(commit.conversations ?? []))
    for (const { args } of (commit.jobs ?? []).filter(({ queue }) => queue === "subagents")) {
      this.childJobs.push({ ...(args as { task: TaskId; job: number }), begun: false })
    }
    const own = <Row extends { readonly conversation: ConversationId | null }>(rows: ReadonlyArray<Row> | undefined) =>
      (rows ?? []).filter((row) => row.conversation === conversation)
    for (const entry of own(commit.entries)) {
      const last = this.entries.at(-1)
      if (last !== undefined && entry.id <= last.id) throw new Error("entry ids must grow")
      this.entries.push({ ...entry, seq })
    }
    for (const task of commit.tasks ?? []) {
      const before = this.tasks.get(task.id)
      const change = `${before?.status ?? "pending"}>${task.status}`
      if (before?.status === "terminal") {
        if (!before.inDoubt || task.inDoubt || task.status !== "terminal")
          throw new Error(`task ${task.id} was terminal already`)
        this.tasks.set(task.id, { ...task, seq })
        continue
      }
      if (!legal.has(change) || !order.includes(task.status))
        throw new Error(`illegal transition ${change} (${task.kind})`)
      if (task.status === "terminal" && task.outcome === null) throw new Error("terminal without outcome")
      this.tasks.set(task.id, { ...task, seq })
    }
    for (const row of own(commit.submissions)) {
      const before = this.submissions.get(row.id)
      if (before?.status === "done" || before?.status === "unanswered") throw new Error("a settled submission changed")
      this.submissions.set(row.id, { ...row, seq })
    }
    for (const write of own(commit.documents)) {
      const created = this.documents.get(write.id)?.createdSeq ?? seq
      this.documents.set(write.id, { ...write, createdSeq: created, retiredSeq: null, seq })
    }
  }

  private perform(action: Action): void {
    switch (action.type) {
      case "publish":
        this.events.push(action.event)
        return
      case "succeed":
        action.reply.succeed(action.value as never)
        return
      case "fail":
        action.reply.fail(action.failure)
        return
      case "prepare":
        this.jobs.push({ type: "prepare", token: action.token })
        return
      case "request":
        this.jobs.push({ type: "model", token: action.token })
        return
      case "prepareCalls":
        this.jobs.push({ type: "calls", token: action.token, calls: action.calls })
        return
      case "runTool":
        if (this.tasks.get(action.slot.task.id)?.status !== "running") throw new Error("a call ran before its intent")
        this.started.push({
          task: action.slot.task.id,
          replay: action.slot.replay,
          reconciles: action.slot.call.name.startsWith("check"),
        })
        this.jobs.push({ type: "tool", slot: action.slot, happened: false })
        return
      case "reconcile":
        this.jobs.push({ type: "reconcile", slot: action.slot })
        return
      case "compact":
        if (this.tasks.get(action.compaction.task.id)?.status !== "running") throw new Error("asked before its intent")
        this.jobs.push({ type: "compaction", compaction: action.compaction })
        return
      case "hook":
      case "afterRun":
      case "readInput":
        this.jobs.push(action)
        return
      case "stopChildren":
        for (const { task } of action.children) this.stopped.add(task.id)
        return
      case "checkChildren":
        // Nothing is lost here.
        return
      case "stopJobs":
      case "stopCalls":
      case "stopCompaction":
      case "hurryCompaction":
        // As with the shell: each job ends by itself, later, with a `jobEnded`.
        return
      case "timer":
        this.timers.add(action.timer)
        return
      case "clearTimer":
        this.timers.delete(action.timer)
        return
      case "settle":
        this.settled.push(action.submission.id)
        return
      case "self":
        this.send(action.event)
    }
  }

  private reply<A>(kind: string): Reply<A> {
    return {
      succeed: (value) => void this.answers.push({ kind, ok: true, value }),
      fail: (failure) => void this.answers.push({ kind, ok: false, value: failure }),
    }
  }

  submit(value: string, whenBusy: WhenBusy = "followUp"): void {
    const content: ReadonlyArray<UserPart> = [text(value)]
    this.send({ type: "submit", content, whenBusy, requestId: null, reply: this.reply("submit") })
  }

  /** Appends an entry; a note of the kind `app.note` where nothing else is said. */
  write(entry: Partial<EntryDraft> = {}): void {
    const draft: EntryDraft = { kind: "app.note", data: null, model: [], head: null, edits: [], ...entry }
    this.send({ type: "write", entry: draft, requestId: null, reply: this.reply("write") })
  }

  reset(handoff: string | null = null): void {
    this.send({ type: "write", entry: resetDraft(handoff), requestId: null, reply: this.reply("reset") })
  }

  withdraw(submission: SubmissionId): void {
    this.send({ type: "withdraw", submission, reply: this.reply("withdraw") })
  }

  /** Everything, or what one submission is part of. */
  cancel(submission?: SubmissionId): void {
    this.send({ type: "cancel", ...optional("submission", submission), reply: this.reply("cancel") })
  }

  retry(): void {
    this.send({ type: "retry", reply: this.reply("retry") })
  }

  configure(agent: AgentDocument = { effort: "low" }): void {
    this.send({ type: "configure", agent, reply: this.reply("configure") })
  }

  compact(instructions: string | null = null): void {
    const target = { model: "test/model", window: this.window }
    this.send({ type: "compact", instructions, target, reply: this.reply("compact") })
  }

  fire(timer: "backoff" | "flush" | "compaction" | "children" | "question"): void {
    if (!this.timers.delete(timer)) return
    if (timer === "question") this.now += this.policy.questionTimeoutMs ?? questionTimeoutMs
    if (timer === "compaction") this.now += this.policy.backoffMaxMs
    this.send({ type: "timer", timer })
  }

  /** The effect of the tool job at `at` happens outside, before its result is known here. */
  happen(at: number): void {
    const job = this.jobs[at]
    if (job?.type === "tool") this.effect(job)
  }

  private effect(job: Extract<PendingJob, { readonly type: "tool" }>): void {
    if (job.happened) return
    job.happened = true
    const { effect } = job.slot
    if (job.slot.replay === "unsafe") this.world.set(effect, (this.world.get(effect) ?? 0) + 1)
  }

  /** The reconcile job at `at` cannot tell. */
  unknown(at: number): void {
    const job = this.jobs[at]
    if (job?.type !== "reconcile") return
    this.take(at)
    this.send({ type: "reconciled", task: job.slot.task.id, found: { unknown: true, reason: "no answer." } })
  }

  settle(task: Task, answer: EffectAnswer): void {
    this.send({ type: "settleEffect", task, answer, reply: this.reply("settle") })
  }

  /** Answers the open question at `at`. */
  answer(at: number, answer: QuestionAnswer, by = "somebody"): void {
    const question = this.data.questions[at]?.task.id
    if (question === undefined) return
    this.send({ type: "answer", question, answer, by, requestId: null, reply: this.reply("answer") })
  }

  /** The running call of the tool job at `at` asks something. */
  ask(at: number, key = "question"): void {
    const job = this.jobs[at]
    if (job?.type !== "tool") return
    const choice = { id: "colour", text: "Which colour?", options: [], multiple: false, freeText: true }
    const body = { kind: "choice" as const, title: "Colours", questions: [choice] }
    this.send({ type: "ask", owner: job.slot.task.id, key, body, timeoutMs: null, reply: this.reply("ask") })
  }

  private take(at: number): PendingJob | undefined {
    return this.jobs.splice(at, 1)[0]
  }

  /** Streams text of the model job at `at`, if it is one. */
  streamText(at: number, delta: string): void {
    const job = this.jobs[at]
    if (job?.type === "model") this.send({ type: "text", token: job.token, delta })
  }

  /** Streams output of the tool job at `at`, if it is one. */
  output(at: number, chunk: string): void {
    const job = this.jobs[at]
    if (job?.type === "tool") this.send({ type: "toolOutput", task: job.slot.task.id, chunk })
  }

  /** Ends a job well. `calls` are names of the tools that a model job calls. */
  finish(at: number, calls: ReadonlyArray<string> = []): void {
    const job = this.take(at)
    switch (job?.type) {
      case "prepare":
        this.send({ type: "prepared", token: job.token, model: "test/model", window: this.window, system: null })
        return
      case "model": {
        const parts = calls.map(
          (name, k): ToolCallPart => ({ type: "toolCall", id: `c${++this.ids}-${k}`, name, arguments: {} }),
        )
        const content = [text(this.said), ...parts]
        const stopReason = calls.length > 0 ? "tool_calls" : "stop"
        // Without a window everything fits.
        const input = this.window === null ? 1 : estimateMessages(contextOf(this.data.context))
        const usage = { input, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
        this.send({ type: "responded", token: job.token, finished: { content, stopReason, usage } })
        return
      }
      case "calls":
        this.send({
          type: "callsPrepared",
          token: job.token,
          verdicts: job.calls.map(({ name }) =>
            name.startsWith("refused")
              ? { type: "refuse", reason: "not allowed" }
              : {
                  type: "run",
                  args: {},
                  replay: name.startsWith("safe") ? "safe" : "unsafe",
                  whenInterrupted: name.startsWith("wary") ? "inDoubt" : "settled",
                  execution: name.endsWith("one") ? "sequential" : "parallel",
                  ...(name.includes("ask") ? { ask: { ...this.asks, title: `May ${name} run?` } } : {}),
                },
          ),
        })
        return
      case "tool":
        this.effect(job)
        this.send({
          type: "toolEnded",
          task: job.slot.task.id,
          result: { output: [text("result")], ...optional("control", controlOf(job.slot.call.name)) },
        })
        return
      case "reconcile": {
        const happened = this.world.has(job.slot.effect)
        const found = happened ? { happened, result: { output: [text("found")] } } : { happened }
        this.send({ type: "reconciled", task: job.slot.task.id, found })
        return
      }
      case "compaction":
        this.send({
          type: "compacted",
          task: job.compaction.task.id,
          summary: { text: "%%% garbage", todo: "- [pending] go on" },
          model: "test/model",
          usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
        })
        return
      case "hook":
        if (job.hook.type === "afterTools") this.send({ type: "toldEnded", token: job.token })
        else {
          const goesOn = this.continues-- > 0
          this.send({
            type: "yielded",
            token: job.token,
            next: goesOn ? { content: [text("go on")], plugins: ["test"] } : null,
          })
        }
        return
      case "afterRun":
        this.afterRuns.push((job.task.input as { readonly task: TaskId }).task)
        this.send({ type: "afterRunEnded", task: job.task.id })
        return
      case "readInput": {
        const given = textOf(inputOf(job.row).content)
        const changes = given.startsWith("/")
        this.send({
          type: "inputRead",
          submission: job.row.id,
          content: [text("as read")],
          agent: changes ? { instructions: given } : null,
          ...optional("settles", changes ? this.settles : undefined),
          commands: this.commands.map((command) => ({
            maxBytes: 100,
            verdict:
              command === "refused"
                ? { type: "refuse", reason: "not allowed" }
                : {
                    type: "run",
                    args: { command },
                    replay: "unsafe",
                    whenInterrupted: command.startsWith("wary") ? "inDoubt" : "settled",
                    execution: "parallel",
                    ...(command.includes("ask") ? { ask: { ...this.asks, title: `May ${command} run?` } } : {}),
                  },
          })),
        })
        return
      }
      case undefined:
    }
  }

  /** The queue takes the job at `at`; whether there was something to do. */
  beginChild(at: number): boolean {
    const job = this.childJobs[at]
    if (job === undefined || job.begun) return false
    job.begun = true
    const before = this.answers.length
    this.send({ type: "childBegun", task: job.task, job: job.job, reply: this.reply("childBegun") })
    const answer = this.answers.slice(before).find(({ kind }) => kind === "childBegun")
    if (answer?.value === null) this.childJobs.splice(this.childJobs.indexOf(job), 1)
    return answer?.value !== null
  }

  /** The subagent of a job that began ends. */
  endChild(at: number, status: SubagentEnd["status"] = "completed"): void {
    const job = this.childJobs[at]
    if (job === undefined || !job.begun) return
    this.childJobs.splice(at, 1)
    this.childSays(job.task, status)
  }

  private childSays(task: TaskId, status: SubagentEnd["status"]): void {
    const used = { input: 10, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
    const end: SubagentEnd = { status, text: `text of ${task}`, models: { "test/model": used }, turns: 1 }
    this.send({ type: "childEnded", task, end, reply: this.reply("childEnded") })
  }

  /** What the machine asked to stop has stopped. */
  stopChild(task: TaskId): void {
    if (this.stopped.delete(task)) this.childSays(task, "stopped")
  }

  /** The service says that the context of the model job at `at` is too long. */
  overflow(at: number): void {
    const job = this.jobs[at]
    if (job?.type !== "model") return
    this.take(at)
    const error = new ContextOverflow({ model: "test/model", detail: "too long" })
    this.send({ type: "modelFailed", token: job.token, error })
  }

  /** Fails the model, prepare or compaction job at `at`. */
  failModel(at: number, transient: boolean): void {
    const job = this.jobs[at]
    if (job === undefined || (job.type !== "model" && job.type !== "prepare" && job.type !== "compaction")) return
    this.take(at)
    const base = { model: "test/model", status: 500, detail: "no" }
    const error: ModelError = transient
      ? new ModelTransient({ ...base, reason: "server_error", retryAfterMs: null })
      : new ModelRejected(base)
    if (job.type === "compaction") this.send({ type: "compactionFailed", task: job.compaction.task.id, error })
    else this.send({ type: "modelFailed", token: job.token, error })
  }

  /** The job at `at` crashes, or ends because it was stopped. */
  end(at: number, how: "crashed" | "stopped"): void {
    const job = this.take(at)
    if (job === undefined) return
    const end =
      how === "stopped"
        ? ({ type: "stopped" } as const)
        : ({ type: "crashed", reference: "r", message: "broke" } as const)
    const named: Job =
      job.type === "compaction"
        ? { type: job.type, task: job.compaction.task.id }
        : job.type === "afterRun"
          ? { type: job.type, task: job.task.id }
          : job.type === "readInput"
            ? { type: "input", submission: job.row.id }
            : "slot" in job
              ? { type: job.type, task: job.slot.task.id }
              : { type: job.type, token: job.token }
    if (job.type === "tool") this.broken.add(job.slot.task.id)
    this.send({ type: "jobEnded", job: named, end })
  }

  /** Lets everything end well until nothing is left to do. */
  drain(): void {
    const busy = () =>
      [this.jobs, this.childJobs].some((all) => all.length > 0) || this.timers.size + this.stopped.size > 0
    for (let steps = 0; busy(); steps++) {
      if (steps > 10_000) throw new Error("the machine does not come to rest")
      const [stopped] = this.stopped
      if (stopped !== undefined) this.stopChild(stopped)
      if (this.childJobs.length > 0) {
        this.beginChild(0)
        this.endChild(0)
      }
      if (this.jobs.length > 0) {
        if (this.stopping(this.jobs[0])) this.end(0, "stopped")
        else this.finish(0)
      } else {
        this.fire("backoff")
        this.fire("flush")
        this.fire("compaction")
        this.fire("children")
        this.fire("question")
      }
    }
  }

  private commandOf(task: TaskId) {
    return this.data.inputCalls?.find(({ slot }) => slot.task.id === task)
  }

  /** Whether a cancel stops the job. */
  private stopping(job: PendingJob | undefined): boolean {
    if (job?.type === "afterRun" || job?.type === "readInput") return false
    const command = job?.type === "tool" ? this.commandOf(job.slot.task.id) : undefined
    if (command !== undefined) return command.slot.task.abortRequested
    if (job?.type !== "compaction") return this.data.run?.cancelling === true
    return this.data.compactions.some((one) => one.task.id === job.compaction.task.id && one.cancelling)
  }
}
