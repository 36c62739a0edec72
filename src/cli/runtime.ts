/**
 * Runs the Effect of a command: scope, signals, logs, and failures as one line.
 *
 * SIGINT and SIGTERM interrupt the command, its scope closes (the node stops cleanly) and it ends with 130 or 143. A command that has
 * something better to do with Ctrl-C sets a handler. A second SIGTERM, or a signal while the scope does not close, ends the process; so does
 * the end of the time that stopping may take.
 */
import { Cause, Effect, Exit, Fiber, type Scope } from "effect"
import type { Failure } from "../domain/failure.ts"
import type { Env } from "../models/settings.ts"
import { logLayer, withLogLevel } from "../observability/logs.ts"
import { CommandFailure, ExitCode, messageOf } from "./exit.ts"
import { version } from "./package.ts"

export interface Signals {
  /** Takes over Ctrl-C; `undefined` gives it back. */
  readonly onInterrupt: (handler: (() => void) | undefined) => void
}

/** Failures of the session contract, as the line a person reads. */
export const lineOf = (error: Failure | { readonly message: string }): string => {
  const line = messageOf(error)
  if (!("_tag" in error)) return line
  switch (error._tag) {
    case "NotFound":
      return error.what.startsWith("conversation") ? `${line}; see: super-pi session list` : line
    case "Busy":
      return `${line}; try again ${error.retryAfterMs === null ? "later" : `in ${Math.ceil(error.retryAfterMs / 1000)} s`}`
    case "ServiceFailure":
      return error.reference === "" ? line : `${line} (reference ${error.reference})`
    default:
      return line
  }
}

/** Spans are exported where a collector is named; what that takes is loaded only then. */
const observed = <A, E>(command: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> => {
  const { OTEL_EXPORTER_OTLP_ENDPOINT: common = "", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: own = "" } = process.env
  if (common === "" && own === "") return command
  return Effect.flatMap(
    Effect.promise(() => import("../observability/tracing.ts")),
    ({ underTracer }) => underTracer(process.env, version(), command),
  )
}

type Failed = Failure | { readonly message: string }

/** Runs to the command's exit code; rejects with a {@link CommandFailure}. */
export const runCommand = async (
  command: (signals: Signals) => Effect.Effect<number, Failed, Scope.Scope>,
  /** The exit code after SIGTERM: 0 for a server, which is done when it is told so. */
  terminated: number = ExitCode.terminated,
  /** Says what is logged, and how. */
  env: Env = process.env,
  /** How long stopping may take after a signal, in ms: a server that is away must not keep the process. */
  stopMs = 60_000,
): Promise<number> => {
  let handler: (() => void) | undefined
  let signalled: number | undefined
  const stop = (code: number) => {
    if (signalled !== undefined) process.exit(code)
    signalled = code
    const late = () => {
      process.stderr.write("super-pi: it did not stop in time and ends; what was acknowledged is kept\n")
      process.exit(code)
    }
    setTimeout(late, stopMs).unref()
    Effect.runFork(Fiber.interrupt(fiber))
  }
  const onInt = () => (handler === undefined ? stop(ExitCode.interrupted) : handler())
  const onTerm = () => stop(terminated)
  const signals: Signals = {
    onInterrupt: (next) => {
      handler = next
    },
  }
  const fiber = Effect.runFork(
    observed(Effect.suspend(() => command(signals)).pipe(Effect.scoped)).pipe(
      Effect.scoped,
      withLogLevel(env),
      Effect.provide(logLayer(env)),
    ),
  )
  process.on("SIGINT", onInt)
  process.on("SIGTERM", onTerm)
  process.on("SIGHUP", onTerm)
  try {
    const exit = await Effect.runPromise(Fiber.await(fiber))
    if (Exit.isSuccess(exit)) return signalled ?? exit.value
    if (signalled !== undefined && Cause.isInterrupted(exit.cause)) return signalled
    const failure = Cause.failureOption(exit.cause)
    if (failure._tag === "Some") {
      const error = failure.value
      throw error instanceof CommandFailure
        ? error
        : new CommandFailure(lineOf(error), ExitCode.failure, { cause: error })
    }
    const defect = Cause.squash(exit.cause)
    if (defect instanceof CommandFailure) throw defect
    throw new CommandFailure(
      `internal error: ${messageOf(defect)}; run again with SUPER_PI_DEBUG=1 to see where`,
      ExitCode.failure,
      { cause: new Error(Cause.pretty(exit.cause)) },
    )
  } finally {
    process.off("SIGINT", onInt)
    process.off("SIGTERM", onTerm)
    process.off("SIGHUP", onTerm)
  }
}
