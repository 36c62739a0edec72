/**
 * The start of the programs: reads the arguments, loads the one command that was asked for and turns how it ended into an exit code. Keep what
 * is imported here tiny: it is the start of every command.
 */
import { parse } from "./arguments.ts"
import { superPi } from "./commands.ts"
import { CommandFailure, ExitCode, messageOf, usageFailure } from "./exit.ts"

/** A reader that went away (`super-pi session list | head -1`) is no failure. */
const onStreamError = (error: NodeJS.ErrnoException): void => {
  if (error.code === "EPIPE") process.exit(ExitCode.ok)
  throw error
}

const run = async (argv: ReadonlyArray<string>): Promise<number> => {
  const parsed = parse(superPi, argv)
  switch (parsed.kind) {
    case "fault":
      throw usageFailure(parsed.message)
    case "help": {
      const { helpPage } = await import("./help.ts")
      process.stdout.write(`${helpPage(parsed.command, parsed.path)}\n`)
      return ExitCode.ok
    }
    case "version": {
      const { version } = await import("./package.ts")
      process.stdout.write(`super-pi ${version()}\n`)
      return ExitCode.ok
    }
    case "invocation": {
      const { command } = parsed.invocation
      if (command.load === undefined)
        throw usageFailure(`${parsed.invocation.path.join(" ")} is not a command by itself`)
      const { main } = await command.load()
      return await main(parsed.invocation)
    }
  }
}

/** One line on stderr; with SUPER_PI_DEBUG=1 the whole cause. */
const report = (error: unknown): number => {
  const failure =
    error instanceof CommandFailure ? error : new CommandFailure(messageOf(error), ExitCode.failure, { cause: error })
  process.stderr.write(`super-pi: ${failure.message}\n`)
  if (process.env.SUPER_PI_DEBUG === "1") {
    const cause = failure.cause ?? failure
    process.stderr.write(`${cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}\n`)
  }
  return failure.exitCode
}

/** Runs a command line and ends the process with its exit code. */
export const runProgram = (argv: ReadonlyArray<string>): void => {
  // What escapes every handler ends the process like any other failure: with one line.
  process.on("uncaughtException", (error) => process.exit(report(error)))
  process.stdout.on("error", onStreamError)
  process.stderr.on("error", onStreamError)
  run(argv)
    .catch(report)
    .then((code) => {
      process.exitCode = code
      // What was written reaches the reader before the process leaves; idle connections do not hold it.
      process.stdout.write("", () => process.exit(code))
    })
}
