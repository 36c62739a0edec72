/**
 * The log of the command line: to stderr, since stdout may speak a protocol, and only when SUPER_PI_LOG_LEVEL asks for it. The values of
 * variables that are named like secrets, and what has the form of a key, are taken out of every line.
 */
import { type Effect, type Layer, Logger, LogLevel } from "effect"
import { redactText, secretsOf } from "../domain/redact.ts"

type Env = Readonly<Record<string, string | undefined>>

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

const levelOf = (env: Env): LogLevel.LogLevel | undefined => levels[(env.SUPER_PI_LOG_LEVEL ?? "").toLowerCase()]

/** Headers of exports carry keys too. */
const headersOf = (env: Env): ReadonlyArray<string> =>
  [env.OTEL_EXPORTER_OTLP_HEADERS, env.OTEL_EXPORTER_OTLP_TRACES_HEADERS].flatMap((list) =>
    (list ?? "").split(",").flatMap((pair) => {
      const found = pair.slice(pair.indexOf("=") + 1).trim()
      return found.length >= 8 ? [found] : []
    }),
  )

/** Lines of one format, `json`, `pretty` or (default) `logfmt`. */
const lines = (env: Env): Logger.Logger<unknown, string> => {
  const format = (env.SUPER_PI_LOG_FORMAT ?? "").toLowerCase()
  if (format === "json") return Logger.jsonLogger
  return format === "pretty" ? prettyLine : Logger.logfmtLogger
}

/** `12:00:00.000 INFO message key=value`, for people. */
const prettyLine: Logger.Logger<unknown, string> = Logger.make((options) => {
  const line = Logger.stringLogger.log(options)
  const shown = /^timestamp=\S*T(\S+?)Z? level=(\S+) fiber=\S+ ?(?:message=)?/.exec(line)
  return shown === null ? line : `${shown[1]} ${(shown[2] ?? "").padEnd(5)} ${line.slice(shown[0].length)}`
})

/** The logger of the command line. */
export const logLayer = (env: Env): Layer.Layer<never> => {
  if (levelOf(env) === undefined) return Logger.remove(Logger.defaultLogger)
  const secrets = [...secretsOf(env), ...headersOf(env)]
  const safe = Logger.map(lines(env), (line) => redactText(line, secrets))
  return Logger.replace(Logger.defaultLogger, Logger.withConsoleError(safe))
}

/** What is let through: nothing, where no level is asked for. */
export const withLogLevel =
  (env: Env) =>
  <A, E, R>(work: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Logger.withMinimumLogLevel(work, levelOf(env) ?? LogLevel.None)
