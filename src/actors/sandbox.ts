/**
 * The sandbox as actors: each slot is a machine that owns at most one thread and runs one job at a time.
 *
 *   cold --run--> warm        a thread was started and is kept
 *   warm --run--> warm | cold cold when the job had to be ended, and its thread with it
 *   warm --rest--> cold       nothing came for a while
 *
 * What a job does wrong is its own typed error and never a crash of the slot; a slot that breaks is restarted, and its caller gets
 * SandboxCrashed. A caller that is interrupted completes `cancelled`, which ends the thread.
 */
import { Deferred, Effect, Layer } from "effect"
import type { JobInput, JobName, JobOutput } from "../tools/jobs.ts"
import {
  Sandbox,
  SandboxCrashed,
  type SandboxError,
  type SandboxLimits,
  type SandboxService,
} from "../tools/sandbox.ts"
import { SandboxThread } from "../tools/sandbox-thread.ts"
import { Slots } from "../tools/slots.ts"
import {
  type ActorRef,
  type ActorSystem,
  ask,
  type Behavior,
  keep,
  type Machine,
  next,
  type ReplyTo,
  type SpawnError,
  spawn,
  stateMachine,
  stateTimeout,
  type Transition,
} from "./kernel/index.ts"

/** What a slot understands. */
type SandboxMessage =
  | {
      readonly type: "run"
      readonly job: JobName
      readonly input: JobInput<JobName>
      readonly limits: SandboxLimits
      readonly cancelled: Deferred.Deferred<void>
      readonly reply: ReplyTo<unknown, SandboxError>
    }
  | { readonly type: "rest" }

export interface SandboxSlotOptions {
  /** How long an idle thread is kept, in milliseconds. Default 30,000. */
  readonly idleMs?: number
}

interface Data {
  readonly thread: SandboxThread | undefined
  /** Jobs done, and those among them that had to be ended. */
  readonly done: number
  readonly ended: number
}

type SlotState = "cold" | "warm"

/** The thread of this slot where it fits, else a new one. */
const threadFor = (data: Data, job: JobName, heapMb: number) => {
  const { thread } = data
  if (thread?.alive === true && thread.heapMb === heapMb) return Effect.succeed(thread)
  thread?.stop()
  return SandboxThread.start(job, heapMb)
}

const run = (
  data: Data,
  message: Extract<SandboxMessage, { readonly type: "run" }>,
  idleMs: number,
): Effect.Effect<Transition<SlotState, Data, SandboxMessage>> => {
  const { job, input, limits, cancelled, reply } = message
  return Effect.gen(function* () {
    // Cancelled while it waited in the mailbox.
    if (yield* Deferred.isDone(cancelled)) return keep(data)
    let thread: SandboxThread | undefined
    // Not interruptible, so that a thread that has started is always known here.
    const taken = Effect.uninterruptible(
      Effect.map(threadFor(data, job, limits.heapMb), (one) => {
        thread = one
        return one
      }),
    )
    const work = Effect.flatMap(taken, (one) => one.run(job, input, limits))
    const cancel = Effect.as(Deferred.await(cancelled), undefined)
    const outcome = yield* Effect.either(Effect.raceFirst(work, cancel))
    if (outcome._tag === "Right") reply.succeed(outcome.right)
    else reply.fail(outcome.left)
    const kept = thread?.alive === true ? thread : undefined
    const after = { thread: kept, done: data.done + 1, ended: data.ended + (kept === undefined ? 1 : 0) }
    return kept === undefined
      ? next("cold", after)
      : next("warm", after, [stateTimeout<SandboxMessage>(idleMs, { type: "rest" })])
  })
}

/** One slot. */
const sandboxSlot = ({
  idleMs = 30_000,
}: SandboxSlotOptions = {}): Behavior<Machine<SlotState, Data>, SandboxMessage> =>
  stateMachine<Data, SandboxMessage, SlotState>({
    name: "sandbox",
    init: () => ({ state: "cold", data: { thread: undefined, done: 0, ended: 0 } }),
    handle: (_state, message, data) => {
      if (message.type === "run") return run(data, message, idleMs)
      data.thread?.stop()
      return Effect.succeed(next("cold", { ...data, thread: undefined }))
    },
    onStop: (_state, _reason, data) => Effect.sync(() => data.thread?.stop()),
    describe: (state, { done, ended }) => `${state}, ${done} done, ${ended} ended`,
  })

const serviceOf = (slots: ReadonlyArray<ActorRef<SandboxMessage>>): Effect.Effect<SandboxService> =>
  Effect.sync((): SandboxService => {
    const places = new Slots(slots)
    const on = <J extends JobName>(
      slot: ActorRef<SandboxMessage>,
      job: J,
      input: JobInput<J>,
      limits: SandboxLimits,
    ): Effect.Effect<JobOutput<J>, SandboxError> =>
      Effect.flatMap(Deferred.make<void>(), (cancelled) =>
        ask<SandboxMessage, unknown, SandboxError>(
          slot,
          (reply) => ({ type: "run", job, input, limits, cancelled, reply }),
          { timeoutMs: Number.POSITIVE_INFINITY },
        ).pipe(
          Effect.onInterrupt(() => Deferred.succeed(cancelled, undefined)),
          Effect.catchTags({
            ActorDown: (error) => Effect.fail(new SandboxCrashed({ job, reason: error.message })),
            AskTimeout: (error) => Effect.fail(new SandboxCrashed({ job, reason: error.message })),
          }),
          // The slot answers with what the job of that name returned.
          Effect.map((value) => value as JobOutput<J>),
        ),
      )
    return { run: (job, input, limits) => places.use((slot) => on(slot, job, input, limits)) }
  })

/** {@link Sandbox} served by `size` slots (default 2) of the node, below `parent` or the system's guardian. */
export const sandboxLayer = (
  options: SandboxSlotOptions & { readonly size?: number; readonly parent?: ActorRef<never> } = {},
): Layer.Layer<Sandbox, SpawnError, ActorSystem> =>
  Layer.effect(
    Sandbox,
    Effect.flatMap(
      Effect.forEach(
        Array.from({ length: options.size ?? 2 }, (_, index) => index + 1),
        (number) =>
          spawn(sandboxSlot(options), {
            ...(options.parent === undefined ? {} : { parent: options.parent }),
            name: `sandbox-${number}`,
            childSpec: { restart: "permanent", shutdownMs: 1000 },
          }),
      ),
      serviceOf,
    ),
  )
