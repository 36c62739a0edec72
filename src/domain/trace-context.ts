/**
 * Which trace a piece of work belongs to, as it travels and as it is stored: the header `traceparent` of W3C Trace Context. Pure.
 */
import { Context, Option, Tracer } from "effect"

/** Where a trace goes on. `spanId` of zeros: a trace that has an id and no span yet. */
export interface TraceContext {
  /** 32 hexadecimal digits, lower case, not all zero. */
  readonly traceId: string
  /** 16 hexadecimal digits, lower case. */
  readonly spanId: string
  readonly sampled: boolean
}

/** The span id of a trace that is named and not begun. */
export const noSpan = "0000000000000000"

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** Reads a `traceparent`; null where there is none or it is malformed, as the specification wants. */
export const parseTraceparent = (header: unknown): TraceContext | null => {
  if (typeof header !== "string" || header.length > 256) return null
  const [, version, traceId, spanId, flags, more] = shape.exec(header.trim()) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return null
  // A later version may say more behind the flags, this one may not.
  if (version === "ff" || (version === "00" && more !== undefined) || /^0+$/.test(traceId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The `traceparent` of a place in a trace. */
export const formatTraceparent = ({ sampled, spanId, traceId }: TraceContext): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`

/** Whether it can be told to others: a trace without a span cannot. */
const isBegun = ({ spanId }: TraceContext): boolean => spanId !== noSpan

/** The header for a request under a span, or null where its trace cannot be told (its ids are not those of W3C). */
export const traceparentOf = (span: TraceContext): string | null => {
  const header = formatTraceparent(span)
  return isBegun(span) && parseTraceparent(header) !== null ? header : null
}

/** The parent of spans that go on with a stored or received trace. */
export const parentOf = (trace: TraceContext): Option.Option<Tracer.AnySpan> =>
  Option.some(Tracer.externalSpan({ ...trace, context: Context.empty() }))
