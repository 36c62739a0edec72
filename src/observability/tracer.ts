/**
 * The tracer whose spans are exported. A span keeps names, times, attributes and the code of how it ended. Log lines, which Effect would add to
 * a span as its events, and the messages and stacks of failures are left out: they may hold what somebody said.
 */
import { type Context, type Exit, Option, Tracer } from "effect"
import { noSpan } from "../domain/trace-context.ts"
import { codeOfCause } from "../domain/traced.ts"
import { freshSpanId, freshTraceId } from "./ids.ts"
import type { Sampling } from "./settings.ts"

/** A span that ended. Times in nanoseconds since the epoch. */
export interface EndedSpan {
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly traceId: string
  readonly spanId: string
  /** Null for the first of its trace. */
  readonly parentId: string | null
  readonly startedAt: bigint
  readonly endedAt: bigint
  readonly attributes: ReadonlyMap<string, unknown>
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  /** The code of its failure, null where it is none. */
  readonly code: string | null
}

const codeOfExit = (exit: Exit.Exit<unknown, unknown>): string | null => {
  if (exit._tag === "Success") return null
  const code = codeOfCause(exit.cause)
  return code === "interrupted" ? null : code
}

class ExportedSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly spanId = freshSpanId()
  readonly traceId: string
  readonly parent: Option.Option<Tracer.AnySpan>
  readonly context: Context.Context<never>
  readonly attributes = new Map<string, unknown>()
  readonly links: Array<Tracer.SpanLink>
  readonly kind: Tracer.SpanKind
  readonly sampled: boolean
  status: Tracer.SpanStatus
  private readonly startedAt: bigint
  private readonly sink: (span: EndedSpan) => void

  constructor(
    name: string,
    parent: Option.Option<Tracer.AnySpan>,
    context: Context.Context<never>,
    links: ReadonlyArray<Tracer.SpanLink>,
    startedAt: bigint,
    kind: Tracer.SpanKind,
    trace: { readonly id: string; readonly sampled: boolean },
    sink: (span: EndedSpan) => void,
  ) {
    this.name = name
    this.parent = parent
    this.context = context
    this.links = [...links]
    this.startedAt = startedAt
    this.status = { _tag: "Started", startTime: startedAt }
    this.kind = kind
    this.traceId = trace.id
    this.sampled = trace.sampled
    this.sink = sink
  }

  attribute(key: string, value: unknown): void {
    if (this.sampled) this.attributes.set(key, value)
  }

  event(): void {}

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    this.links.push(...links)
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.status._tag === "Ended") return
    const { attributes, kind, links, name, parent, spanId, startedAt, traceId } = this
    this.status = { _tag: "Ended", startTime: startedAt, endTime, exit }
    if (!this.sampled) return
    const parentId = Option.isSome(parent) && parent.value.spanId !== noSpan ? parent.value.spanId : null
    this.sink({
      name,
      kind,
      traceId,
      spanId,
      parentId,
      startedAt,
      endedAt: endTime,
      attributes,
      links: links.map(({ span }) => ({ traceId: span.traceId, spanId: span.spanId })),
      code: codeOfExit(exit),
    })
  }
}

/** Of the newest 56 bits of a trace id, which are random by the specification. */
const space = 2 ** 56

/** Whether a new trace is kept; the same for every program that takes part in it. */
const drawn = (traceId: string, ratio: number): boolean =>
  ratio >= 1 || Number.parseInt(traceId.slice(-14), 16) < ratio * space

/** A tracer that gives the spans of sampled traces to `sink` when they end. */
export const exportingTracer = ({ parentBased, ratio }: Sampling, sink: (span: EndedSpan) => void): Tracer.Tracer =>
  Tracer.make({
    span: (name, parent, context, links, startedAt, kind) => {
      const above = Option.getOrNull(parent)
      const id = above?.traceId ?? freshTraceId()
      const local = above?._tag === "Span"
      const begun = above !== null && above.spanId !== noSpan
      const sampled = begun && (local || parentBased) ? above.sampled : drawn(id, ratio)
      return new ExportedSpan(name, parent, context, links, startedAt, kind, { id, sampled }, sink)
    },
    context: (f) => f(),
  })
