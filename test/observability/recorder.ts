/**
 * A tracer that keeps every ended span, as an application's own tracer would see it.
 */
import { type Context, type Exit, Option, Tracer } from "effect"

export interface Recorded {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentId: string | null
  readonly kind: string
  readonly attributes: Readonly<Record<string, unknown>>
  readonly links: ReadonlyArray<string>
  readonly exit: Exit.Exit<unknown, unknown>
  readonly events: ReadonlyArray<unknown>
}

export class Recorder {
  readonly spans: Array<Recorded> = []
  private count = 0

  readonly tracer: Tracer.Tracer = Tracer.make({
    span: (name, parent, context, links, startTime, kind) =>
      this.begin(name, parent, context, [...links], startTime, kind),
    context: (f) => f(),
  })

  named(name: string): ReadonlyArray<Recorded> {
    return this.spans.filter((span) => span.name === name)
  }

  private begin(
    name: string,
    parent: Option.Option<Tracer.AnySpan>,
    context: Context.Context<never>,
    links: Array<Tracer.SpanLink>,
    startTime: bigint,
    kind: Tracer.SpanKind,
  ): Tracer.Span {
    this.count += 1
    const spanId = this.count.toString(16).padStart(16, "0")
    const traceId = Option.match(parent, { onNone: () => spanId.padStart(32, "1"), onSome: (one) => one.traceId })
    const attributes = new Map<string, unknown>()
    const events: Array<unknown> = []
    const { spans } = this
    return {
      _tag: "Span",
      name,
      spanId,
      traceId,
      parent,
      context,
      status: { _tag: "Started", startTime },
      attributes,
      links,
      sampled: true,
      kind,
      attribute: (key, value) => void attributes.set(key, value),
      event: (eventName, _at, more) => void events.push([eventName, more]),
      addLinks: (more) => void links.push(...more),
      end: (_at, exit) => {
        const parentId = Option.match(parent, { onNone: () => null, onSome: (one) => one.spanId })
        const linked = links.map((link) => link.span.spanId)
        const told = Object.fromEntries(attributes)
        spans.push({ name, traceId, spanId, parentId, kind, attributes: told, links: linked, exit, events })
      },
    }
  }
}
