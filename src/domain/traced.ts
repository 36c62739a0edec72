/**
 * Spans that cost nothing until somebody looks: under Effect's own tracer, which keeps spans for nobody, the work runs as it is. How the work
 * ended is told by a code: a failure's message may hold what a person or a model said, and is kept from every tracer.
 */
import { Cause, type Clock, Effect, Exit, Option, Tracer } from "effect"

/** The tracer of a program that sets none. */
const silent: Tracer.Tracer = Effect.runSync(Effect.tracer)

/** Whether spans are for nobody. */
export const isSilent = (tracer: Tracer.Tracer): boolean => tracer === silent

/** The failure of a span: its code, without a message of anybody's and without a stack. */
export class SpanFailure extends Error {
  override readonly name = "SpanFailure"
  readonly code: string

  constructor(code: string) {
    super(code)
    this.code = code
    this.stack = `SpanFailure: ${code}`
  }
}

/** What a code may look like: names of error types, and codes of failures. */
const codeShape = /^[A-Za-z][\w.-]{0,63}$/

/** The code of an error: its `code` or its tag, else `error`. Never a part of its message. */
const codeOf = (error: unknown): string => {
  if (typeof error !== "object" || error === null) return "error"
  const { _tag, code, name } = error as { readonly _tag?: unknown; readonly code?: unknown; readonly name?: unknown }
  for (const one of [error instanceof SpanFailure ? code : _tag, name]) {
    if (typeof one === "string" && codeShape.test(one)) return one
  }
  return "error"
}

/** Why it failed as a code: the tag of its failure, `defect`, or `interrupted`. */
export const codeOfCause = (
  cause: Cause.Cause<unknown>,
  code: (error: unknown) => string | null = () => null,
): string => {
  const failure = Cause.failureOption(cause)
  if (Option.isSome(failure)) return code(failure.value) ?? codeOf(failure.value)
  return Cause.isInterruptedOnly(cause) ? "interrupted" : "defect"
}

const nothing = Exit.void

/** Ends a span: well (null), or with a code. An interruption is no failure, and is said by an attribute. */
export const endSpan = (span: Tracer.Span, clock: Clock.Clock, code: string | null): void => {
  if (code === "interrupted") span.attribute("super_pi.interrupted", true)
  else if (code !== null) span.attribute("error.type", code)
  const exit = code === null || code === "interrupted" ? nothing : Exit.fail(new SpanFailure(code))
  span.end(clock.unsafeCurrentTimeNanos(), exit)
}

export interface TracedOptions<A> {
  readonly kind?: Tracer.SpanKind
  /** Told the value: may add attributes, and gives a code where it is a failure though the Effect is none. */
  readonly ended?: (value: A, span: Tracer.Span) => string | null
  /** The code of a failure, where its tag is not it; null: its tag. */
  readonly code?: (error: unknown) => string | null
}

const spanned = <A, E, R>(
  work: Effect.Effect<A, E, R>,
  name: string,
  attributes: Readonly<Record<string, unknown>>,
  { code: given, ended, kind = "internal" }: TracedOptions<A>,
): Effect.Effect<A, E, R> =>
  Effect.uninterruptibleMask((restore) =>
    Effect.flatMap(
      Effect.zip(Effect.makeSpan(name, { captureStackTrace: false, attributes, kind }), Effect.clock),
      ([span, clock]) =>
        Effect.onExit(restore(Effect.provideService(work, Tracer.ParentSpan, span)), (exit) =>
          Effect.sync(() => {
            const code = Exit.isFailure(exit) ? codeOfCause(exit.cause, given) : (ended?.(exit.value, span) ?? null)
            endSpan(span, clock, code)
          }),
        ) as Effect.Effect<A, E, R>, // what `work` needs of a parent span is given
    ),
  )

/** `work` in a span of that name where a tracer is set (for example OpenTelemetry's); its stack is not captured. */
export const traced =
  <A = unknown>(name: string, attributes: Readonly<Record<string, unknown>>, options: TracedOptions<A> = {}) =>
  <B extends A, E, R>(work: Effect.Effect<B, E, R>): Effect.Effect<B, E, R> =>
    Effect.tracerWith((tracer) => (tracer === silent ? work : spanned(work, name, attributes, options)))
