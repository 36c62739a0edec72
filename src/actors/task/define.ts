/**
 * `defineTask`: a durable state machine as an application writes it. Its phases are Effects that need the application's services (`R`); its
 * input, checkpoints, result and error are Effect Schemas. The definition is code; what is stored is JSON, with the version that wrote it.
 */
import { Cause, Effect, Either, type Schema } from "effect"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import type { Json } from "../../domain/json.ts"
import type { TaskOutcome } from "../../domain/task.ts"
import { describeCause } from "../kernel/index.ts"
import { type Codec, codec } from "./codec.ts"
import type { TaskRuntime } from "./runtime.ts"
import type { Step } from "./step.ts"

/** A checkpoint names the phase that goes on from it. */
export interface Phased {
  readonly phase: string
}

/** The task as its phases see it. */
export interface PhaseTask<Input, C> {
  readonly id: TaskId
  readonly conversation: ConversationId | null
  readonly owner: TaskId | null
  readonly input: Input
  readonly checkpoint: C
}

/** One function per phase, named as in the checkpoint's `phase`. A typed failure ends the task as `failed`, a defect as `faulted`. */
export type Phases<Input, C extends Phased, A, E> = {
  readonly [P in C["phase"]]: (
    task: PhaseTask<Input, Extract<C, { readonly phase: P }>>,
    runtime: TaskRuntime,
  ) => Effect.Effect<Step<C, A, E>, E, unknown>
}

/** What older code stored, as JSON. */
export interface StoredTask {
  readonly version: number
  readonly input: Json
  readonly checkpoint: Json
}

export interface TaskSpec<Input, II, C extends Phased, CI, A, AI, E, EI> {
  /** Unique in the application, for example `shop.checkout`. Kinds that start with `pi.` are the engine's. */
  readonly kind: string
  /** Raise it when `input` or `checkpoint` change their shape, and give `migrate`. */
  readonly version: number
  readonly input: Schema.Schema<Input, II>
  /** A union of structs tagged by `phase`. */
  readonly checkpoint: Schema.Schema<C, CI>
  readonly result: Schema.Schema<A, AI>
  readonly error?: Schema.Schema<E, EI>
  readonly initial: (input: Input) => C
  /** Takes what an older version stored to this version's JSON. A task that it throws for, or leaves unreadable, is parked. */
  readonly migrate?: (stored: StoredTask) => { readonly input: Json; readonly checkpoint: Json }
}

/** What one run of a phase came to. */
export type PhaseEnd =
  | { readonly type: "step"; readonly step: Step<Json, Json, Json> }
  | { readonly type: "failed"; readonly error: Json }
  | { readonly type: "faulted"; readonly message: string }
  /** What is stored cannot be read by this code. */
  | { readonly type: "unreadable"; readonly message: string }

/** A definition with its types taken away, as the engine runs it. */
export interface TaskCode<out R> {
  readonly kind: string
  readonly version: number
  readonly run: (task: PhaseTask<Json, Json>, runtime: TaskRuntime) => Effect.Effect<PhaseEnd, never, R>
  /** Null where a task has nothing to undo. */
  readonly undo:
    | ((task: PhaseTask<Json, Json>, runtime: TaskRuntime) => Effect.Effect<PhaseEnd | null, never, R>)
    | null
  /** Left is why it cannot. */
  readonly migrate: ((stored: StoredTask) => Either.Either<StoredTask, string>) | null
}

/** How a task ended, with the types of its definition. */
export type Outcome<A, E> =
  | { readonly status: "completed"; readonly result: A }
  | { readonly status: "failed"; readonly error: E }
  | { readonly status: "aborted"; readonly reason: string }
  | { readonly status: "faulted"; readonly error: string }
  | { readonly status: "orphaned"; readonly reason: string }

export interface TaskDefinition<in Input, out A, out E, out R> {
  readonly kind: string
  readonly version: number
  readonly code: TaskCode<R>
  /** The first row's JSON; Left is what is wrong with the input. */
  readonly begin: (input: Input) => Either.Either<StoredTask, string>
  /** Left is why the stored outcome does not fit this definition. */
  readonly outcome: (outcome: TaskOutcome) => Either.Either<Outcome<A, E>, string>
}

const kindShape = /^[a-z0-9][\w.-]*$/i

/**
 * Defines a kind of task. Throws a RangeError for a kind or version that cannot be stored. `abort` undoes what the phases did; it runs once
 * everything that the task owns has ended, and again after a crash, so it must be safe to repeat.
 */
export const defineTask = <
  Input,
  II,
  C extends Phased,
  CI,
  A,
  AI,
  const P extends Phases<Input, C, A, E>,
  E = never,
  EI = never,
  RA = never,
>(
  spec: TaskSpec<Input, II, C, CI, A, AI, E, EI> & {
    readonly phases: P
    readonly abort?: (task: PhaseTask<Input, C>, runtime: TaskRuntime) => Effect.Effect<void, never, RA>
  },
): TaskDefinition<Input, A, E, RA | Effect.Effect.Context<ReturnType<P[keyof P & C["phase"]]>>> => {
  type R = RA | Effect.Effect.Context<ReturnType<P[keyof P & C["phase"]]>>
  if (!kindShape.test(spec.kind) || spec.kind.startsWith("pi.")) {
    const expected = "letters, digits, dots, dashes or underscores, and no name that starts with pi."
    throw new RangeError(`kind: expected ${expected}, got ${JSON.stringify(spec.kind)}`)
  }
  if (!Number.isSafeInteger(spec.version) || spec.version < 0) {
    throw new RangeError(`version of ${spec.kind}: expected a whole number of at least 0, got ${spec.version}`)
  }
  const input = codec("input", spec.input)
  const checkpoint = codec("checkpoint", spec.checkpoint)
  const result = codec("result", spec.result)
  const error: Codec<E> | null = spec.error === undefined ? null : codec("error", spec.error)

  const encodeError = (value: E): Either.Either<Json, string> =>
    error === null ? Either.left("error: expected a definition with an error schema") : error.encode(value)

  const encodeStep = (step: Step<C, A, E>): Either.Either<Step<Json, Json, Json>, string> => {
    switch (step.type) {
      case "complete":
        return Either.map(result.encode(step.result), (value) => ({ ...step, result: value }))
      case "fail":
        return Either.map(encodeError(step.error), (value) => ({ ...step, error: value }))
      default:
        return Either.map(checkpoint.encode(step.checkpoint), (value) => ({ ...step, checkpoint: value }))
    }
  }

  const read = (task: PhaseTask<Json, Json>): Either.Either<PhaseTask<Input, C>, string> =>
    Either.map(
      Either.all({ input: input.decode(task.input), checkpoint: checkpoint.decode(task.checkpoint) }),
      (decoded) => ({ ...task, ...decoded }),
    )

  const run: TaskCode<R>["run"] = (stored, runtime) => {
    const task = read(stored)
    if (Either.isLeft(task)) return Effect.succeed({ type: "unreadable", message: task.left })
    const { phase } = task.right.checkpoint
    const body = spec.phases[phase as keyof P & C["phase"]]
    if (!Object.hasOwn(spec.phases, phase)) {
      const known = Object.keys(spec.phases).join(", ")
      return Effect.succeed({ type: "unreadable", message: `phase: expected one of ${known}, got ${phase}` })
    }
    // The checkpoint's tag chose the phase; its R is that of the phases.
    const effect = Effect.suspend(() => body(task.right as never, runtime)) as Effect.Effect<Step<C, A, E>, E, R>
    return Effect.matchCause(effect, { onFailure: failed, onSuccess: (step) => stepEnd(encodeStep(step)) })
  }

  const failed = (cause: Cause.Cause<E>): PhaseEnd => {
    const failure = Cause.failureOption(cause)
    if (failure._tag === "None") return { type: "faulted", message: describeCause(cause) }
    return Either.match(encodeError(failure.value), {
      onLeft: (message): PhaseEnd => ({ type: "faulted", message: `${describeCause(cause)} (${message})` }),
      onRight: (value): PhaseEnd => ({ type: "failed", error: value }),
    })
  }

  const { abort, migrate } = spec
  return {
    kind: spec.kind,
    version: spec.version,
    begin: (value) =>
      Either.map(
        Either.all({
          input: input.encode(value),
          checkpoint: Either.flatMap(first(spec.initial, value), checkpoint.encode),
        }),
        (encoded) => ({ version: spec.version, ...encoded }),
      ),
    outcome: (outcome) => {
      if (outcome.status === "completed") {
        return Either.map(result.decode(outcome.result), (value) => ({ status: "completed", result: value }))
      }
      if (outcome.status !== "failed") return Either.right(outcome)
      return error === null
        ? Either.left("error: expected a definition with an error schema")
        : Either.map(error.decode(outcome.error), (value) => ({ status: "failed", error: value }))
    },
    code: {
      kind: spec.kind,
      version: spec.version,
      run,
      undo:
        abort === undefined
          ? null
          : (stored, runtime) => {
              const task = read(stored)
              if (Either.isLeft(task)) return Effect.succeed({ type: "unreadable", message: task.left })
              return Effect.matchCause(
                Effect.suspend(() => abort(task.right, runtime)),
                {
                  onFailure: (cause): PhaseEnd => ({ type: "faulted", message: `abort: ${describeCause(cause)}` }),
                  onSuccess: () => null,
                },
              )
            },
      migrate:
        migrate === undefined
          ? null
          : (stored) =>
              Either.flatMap(
                Either.try({
                  try: () => migrate(stored),
                  catch: (cause) => `migrate: ${describeCause(Cause.die(cause))}`,
                }),
                (migrated) => {
                  const fits = Either.all([input.decode(migrated.input), checkpoint.decode(migrated.checkpoint)])
                  return Either.map(fits, () => ({ version: spec.version, ...migrated }))
                },
              ),
    },
  }
}

const stepEnd = (encoded: Either.Either<Step<Json, Json, Json>, string>): PhaseEnd =>
  Either.match(encoded, {
    onLeft: (message): PhaseEnd => ({ type: "faulted", message }),
    onRight: (step): PhaseEnd => ({ type: "step", step }),
  })

const first = <Input, C>(initial: (input: Input) => C, input: Input): Either.Either<C, string> =>
  Either.try({ try: () => initial(input), catch: (cause) => `initial: ${describeCause(Cause.die(cause))}` })
