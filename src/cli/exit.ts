/**
 * Exit codes of the command line, and the failure that ends it with one line on stderr.
 */

export const ExitCode = {
  ok: 0,
  /** What was asked for did not work. */
  failure: 1,
  /** The command line itself is wrong. */
  usage: 2,
  /** Ctrl-C (128 + SIGINT). */
  interrupted: 130,
  /** Stopped by SIGTERM before it was done (128 + SIGTERM). */
  terminated: 143,
} as const

/** Ends the command. `message` is one line that says what failed and what to do next. */
export class CommandFailure extends Error {
  readonly exitCode: number
  override readonly name = "CommandFailure"
  constructor(message: string, exitCode: number = ExitCode.failure, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** A wrong command line: exit code 2. */
export const usageFailure = (message: string): CommandFailure => new CommandFailure(message, ExitCode.usage)

/** Anything thrown or failed, as the one line a person reads. */
export const messageOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : typeof error === "string" ? error : JSON.stringify(error)
  const line = (text ?? String(error))
    .split("\n")
    .map((part) => part.trim())
    .filter((part) => part !== "")
    .join("; ")
  return line === "" ? "unknown failure" : line
}
