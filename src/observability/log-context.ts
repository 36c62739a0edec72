/**
 * Who a log line is about: annotations that every line of some work carries, added only where lines are written at all.
 */
import { Effect, type Fiber, FiberRef, HashMap, HashSet, Logger } from "effect"

type AnyFiber = Fiber.RuntimeFiber<unknown, unknown>

/** A level that lets something through, and a logger beside the one that writes to spans. */
const writes = (fiber: AnyFiber): boolean => {
  if (fiber.getFiberRef(FiberRef.currentMinimumLogLevel)._tag === "None") return false
  return HashSet.size(HashSet.remove(fiber.getFiberRef(FiberRef.currentLoggers), Logger.tracerLogger)) > 0
}

/** Whether log lines are written. */
export const isLogging: Effect.Effect<boolean> = Effect.withFiberRuntime((fiber) => Effect.succeed(writes(fiber)))

/**
 * Every line that this fiber or handler writes from now on carries this, until its end: for work that has one of its own, since nothing puts
 * back what was there before. Ask {@link isLogging} first.
 */
export const annotateRest = (key: string, value: unknown): Effect.Effect<void> =>
  FiberRef.update(FiberRef.currentLogAnnotations, HashMap.set(key, value))

/** Every line of `work` carries these, where lines are written. */
export const annotated =
  (annotations: Readonly<Record<string, unknown>>) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.withFiberRuntime<A, E, R>((fiber) => (writes(fiber) ? Effect.annotateLogs(work, annotations) : work))
