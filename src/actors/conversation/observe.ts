/**
 * What others see of the work of one conversation: the span `super_pi.turn` of a run, under which its jobs run, and the counts of metrics. Told
 * by the shell after each adopted decision; it reads and never decides. There is none where neither a tracer nor an observer is.
 *
 *   no run → a run begins (its span) → turns, requests, calls → it ends, or another begins: answered, failed, cancelled
 *
 * A run is known by its first submission, which also carries the trace that it belongs to (`trace`, committed with it), so that a run that is
 * taken up after a death goes on in that trace.
 */
import { type Clock, Context, Effect, Option, Tracer } from "effect"
import type { SubmissionId } from "../../domain/ids.ts"
import { formatTraceparent, noSpan, parentOf, parseTraceparent, traceparentOf } from "../../domain/trace-context.ts"
import { endSpan, isSilent } from "../../domain/traced.ts"
import { freshTraceId } from "../../observability/ids.ts"
import type { Observer, TurnStatus } from "../../observability/observer.ts"
import type { Action, Data, MachineEvent, SubmissionRow } from "./machine/data.ts"
import { inputOf } from "./machine/place.ts"
import { turnOf } from "./machine/run.ts"
import type { ConversationSettingsService } from "./settings.ts"

export interface Watching {
  /** Null: nobody keeps spans. */
  readonly tracer: Tracer.Tracer | null
  /** Null: nobody counts. */
  readonly observer: Observer | null
  readonly clock: Clock.Clock
  readonly node: string
}

/** Who looks at a conversation's work; null: nobody does. */
export const watchingOf = (
  tracer: Tracer.Tracer,
  { node, observer }: Pick<ConversationSettingsService, "node" | "observer">,
  clock: Clock.Clock,
): Watching | null => {
  const silent = isSilent(tracer)
  if (silent && observer === undefined) return null
  return { tracer: silent ? null : tracer, observer: observer ?? null, clock, node }
}

/** The run in progress. */
interface Turn {
  readonly first: SubmissionId | null
  readonly span: Tracer.Span | null
  readonly startedAt: bigint
  /** The `traceparent` of its span. */
  readonly trace: string | undefined
  /** The newest model that it asked. */
  model: string
  turns: number
}

/** How a run ended. */
interface End {
  readonly status: TurnStatus
  readonly code: string | null
}

const interrupted: End = { status: "interrupted", code: "interrupted" }

/** How the run ended, by what is published about it. */
const endIn = (actions: ReadonlyArray<Action>): End => {
  for (const action of actions) {
    if (action.type !== "publish") continue
    const { event } = action
    if (event.type === "turn_completed") return { status: "completed", code: null }
    if (event.type === "turn_error") return { status: "error", code: event.code }
    if (event.type === "turn_cancelled") return { status: "cancelled", code: "interrupted" }
  }
  return interrupted
}

/** Where the trace of an input goes on; none for one that was handed in while nobody kept spans. */
const parentIn = (row: SubmissionRow | undefined): Option.Option<Tracer.AnySpan> => {
  const trace = row === undefined || row.kind !== "input" ? null : parseTraceparent(inputOf(row).trace)
  return trace === null ? Option.none() : parentOf(trace)
}

/** The trace that an input belongs to, to be stored with it: the caller's, or one of its own that begins with its run. */
const callersTrace: Effect.Effect<string> = Effect.map(Effect.option(Effect.currentParentSpan), (caller) => {
  const known = Option.isNone(caller) ? null : traceparentOf(caller.value)
  return known ?? formatTraceparent({ traceId: freshTraceId(), spanId: noSpan, sampled: true })
})

type Submit = Extract<MachineEvent, { readonly type: "submit" }>

/** An input with the trace that it belongs to, where spans are kept. */
export const withTrace = (observed: Observed | null, message: Submit): Effect.Effect<Submit> =>
  observed === null || observed.watching.tracer === null
    ? Effect.succeed(message)
    : Effect.map(callersTrace, (trace) => Object.assign({ trace }, message))

export class Observed {
  private turn: Turn | null = null
  readonly watching: Watching
  private readonly conversation: number

  constructor(watching: Watching, conversation: number) {
    this.watching = watching
    this.conversation = conversation
    watching.observer?.conversations(1)
  }

  /** Where subagents of this turn belong, or undefined outside of a trace. */
  get trace(): string | undefined {
    return this.turn?.trace
  }

  /** After a decision was adopted and before its actions are performed. `resumed`: the run was begun by an earlier life. */
  decided({ run }: Data, actions: ReadonlyArray<Action>, resumed: boolean): void {
    const { turn } = this
    const first = run?.submissions[0]?.id ?? null
    if (turn !== null && (run === null || first !== turn.first)) this.end(turn, endIn(actions))
    if (run !== null && this.turn === null) this.begin(run.submissions, first, resumed)
    if (run !== null && this.turn !== null) {
      if (run.model !== "") this.turn.model = run.model
      this.turn.turns = turnOf(run.generation)
    }
    const { observer } = this.watching
    if (observer !== null) for (const action of actions) this.count(observer, action)
  }

  /** The work of a job, as a part of the turn. */
  under(work: Effect.Effect<void>): Effect.Effect<void> {
    const span = this.turn?.span
    return span === null || span === undefined ? work : Effect.provideService(work, Tracer.ParentSpan, span)
  }

  /** The actor ends: what its run did so far is told, and whoever takes it up tells the rest. */
  close(): void {
    if (this.turn !== null) this.end(this.turn, interrupted)
    this.watching.observer?.conversations(-1)
  }

  private begin(submissions: ReadonlyArray<SubmissionRow>, first: SubmissionId | null, resumed: boolean): void {
    const { clock, node, tracer } = this.watching
    const startedAt = clock.unsafeCurrentTimeNanos()
    this.turn = { first, startedAt, model: "", turns: 1, span: null, trace: undefined }
    if (tracer === null) return
    const [asked, ...others] = submissions
    const links = others.flatMap(
      (row): ReadonlyArray<Tracer.SpanLink> =>
        Option.match(parentIn(row), {
          onNone: () => [],
          onSome: (span) => (span.spanId === noSpan ? [] : [{ _tag: "SpanLink" as const, span, attributes: {} }]),
        }),
    )
    const span = tracer.span("super_pi.turn", parentIn(asked), Context.empty(), links, startedAt, "internal")
    span.attribute("gen_ai.operation.name", "invoke_agent")
    span.attribute("gen_ai.conversation.id", String(this.conversation))
    span.attribute("super_pi.node", node)
    if (first !== null) span.attribute("super_pi.submission.id", first)
    if (resumed) span.attribute("super_pi.resumed", true)
    this.turn = { first, startedAt, model: "", turns: 1, span, trace: traceparentOf(span) ?? undefined }
  }

  private end(turn: Turn, { code, status }: End): void {
    const { clock, observer } = this.watching
    const { model, span, startedAt, turns } = turn
    this.turn = null
    if (span !== null) {
      if (model !== "") span.attribute("gen_ai.request.model", model)
      span.attribute("super_pi.turn.status", status)
      span.attribute("super_pi.turn.requests", turns)
      endSpan(span, clock, code)
    }
    observer?.turnEnded(model, status, Number(clock.unsafeCurrentTimeNanos() - startedAt) / 1e6)
  }

  private count(observer: Observer, action: Action): void {
    if (action.type !== "publish") return
    const { event } = action
    switch (event.type) {
      case "tool_completed":
        observer.toolEnded(event.name, event.is_error ? "error" : "ok", event.duration_ms)
        return
      case "tool_blocked":
        observer.toolEnded(event.name, "blocked", 0)
        return
      case "retry_scheduled":
        observer.retried(this.turn?.model ?? "")
        return
      case "compaction_completed":
        observer.compacted(event.reason, event.method, event.status)
        return
      case "permission_request":
        observer.asked("permission")
        return
      case "ui_request":
        observer.asked("choice")
        return
      case "question_settled":
        observer.questionEnded(event.result)
    }
  }
}
