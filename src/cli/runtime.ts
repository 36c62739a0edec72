/**
 * Runs the Effect of a command: scope, signals, logs, and failures as one line.
 *
 * SIGINT and SIGTERM interrupt the command, its scope closes (the node stops cleanly) and it ends with 130 or 143. A command that has
 * something better to do with Ctrl-C sets a handler. A second SIGTERM, or a signal while the scope does not close, ends the process.
 */
import { Cause, Effect, Exit, Fiber, Logger, LogLevel, type Scope } from "effect"
import type { Failure } from "../domain/failure.ts"
import { CommandFailure, ExitCode, messageOf } from "./exit.ts"

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

const levels: Readonly<Record<string, LogLevel.LogLevel>> = {
  all: LogLevel.All,
  trace: LogLevel.Trace,
  debug: LogLevel.Debug,
  info: LogLevel.Info,
  warning: LogLevel.Warning,
  warn: LogLevel.Warning,
  error: LogLevel.Error,
  fatal: LogLevel.Fatal,
}

/** Logs go to stderr, and only when SUPER_PI_LOG_LEVEL asks for them. */
const logging = (env: NodeJS.ProcessEnv) => {
  const level = levels[(env.SUPER_PI_LOG_LEVEL ?? "").toLowerCase()]
  if (level === undefined) return Logger.remove(Logger.defaultLogger)
  return Logger.replace(Logger.defaultLogger, Logger.withConsoleError(Logger.logfmtLogger))
}

const minimum = (env: NodeJS.ProcessEnv): LogLevel.LogLevel =>
  levels[(env.SUPER_PI_LOG_LEVEL ?? "").toLowerCase()] ?? LogLevel.None

type Failed = Failure | { readonly message: string }

/** Runs to the command's exit code; rejects with a {@link CommandFailure}. */
export const runCommand = async (
  command: (signals: Signals) => Effect.Effect<number, Failed, Scope.Scope>,
  /** The exit code after SIGTERM: 0 for a server, which is done when it is told so. */
  terminated: number = ExitCode.terminated,
): Promise<number> => {
  let handler: (() => void) | undefined
  let signalled: number | undefined
  const stop = (code: number) => {
    if (signalled !== undefined) process.exit(code)
    signalled = code
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
    Effect.suspend(() => command(signals)).pipe(
      Effect.scoped,
      Logger.withMinimumLogLevel(minimum(process.env)),
      Effect.provide(logging(process.env)),
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
