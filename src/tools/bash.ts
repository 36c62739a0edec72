/**
 * `bash`: a shell command in the workspace.
 */
import { Clock, Effect, Fiber, Option, Schema } from "effect"
import { errorCode } from "../domain/error-code.ts"
import { text } from "../domain/message.ts"
import { defineTool, toolFailure } from "./define.ts"
import { commandEnvironment } from "./environment.ts"
import { sizeText } from "./limits.ts"
import { LiveOutput } from "./live-output.ts"
import type { CommandWalls } from "./os-sandbox-walls.ts"
import { OutputCapture, readable } from "./output-capture.ts"
import { OutputFile } from "./output-file.ts"
import { type ProcessExit, ProcessGroup } from "./process-group.ts"
import type { ToolContext, ToolFailure, ToolResult } from "./tool.ts"
import { reasonOf } from "./workspace.ts"

const name = "bash"
const defaultSeconds = 120
const maxSeconds = 3600
/** From TERM to KILL. */
const graceMs = 2000
const captureLimits = { headChars: 12 * 1024, tailChars: 36 * 1024, memoryBytes: 4 * 1024 * 1024 }
const maxFileBytes = 256 * 1024 * 1024
/** The kernel takes 128 KiB in one argument. */
const maxCommandBytes = 120 * 1024

const Parameters = Schema.Struct({
  command: Schema.NonEmptyString.annotations({ description: "Command for bash -c" }),
  timeout: Schema.optional(
    Schema.Number.pipe(Schema.between(0.1, maxSeconds)).annotations({
      description: `Seconds after which the command is ended. Default ${defaultSeconds}`,
    }),
  ),
})

const isMissing = (error: unknown): boolean => errorCode(error) === "ENOENT"

/** Starts with bash, or sh where there is no bash; inside walls where the workspace has them. */
const start = (
  command: string,
  { workspace }: ToolContext,
  walls: CommandWalls | null,
  onOutput: (chunk: Buffer) => Promise<void> | undefined,
) => {
  const env = commandEnvironment(process.env, { ...walls?.env, ...workspace.env })
  const options = { command, cwd: workspace.root, env, onOutput, prefix: walls?.prefix ?? [] }
  return Effect.tryPromise({
    try: () =>
      ProcessGroup.start({ ...options, shell: "bash" }).catch((error: unknown) => {
        if (!isMissing(error)) throw error
        return ProcessGroup.start({ ...options, shell: "sh" })
      }),
    catch: (error) =>
      toolFailure(
        name,
        isMissing(error)
          ? `expected a shell and the directory ${workspace.root}, got neither bash nor sh, or no such directory`
          : `the command could not be started in ${workspace.root}: ${reasonOf(error)}`,
      ),
  })
}

/** The walls of a command; null for none. Loaded where a workspace has them. */
const wallsOf = ({ workspace }: ToolContext): Effect.Effect<CommandWalls | null, ToolFailure> => {
  const { sandbox } = workspace
  if (sandbox === undefined) return Effect.succeed(null)
  return Effect.flatMap(
    Effect.promise(async () => (await import("./os-sandbox-walls.ts")).commandWalls(workspace.root, sandbox)),
    (found) => ("refused" in found ? Effect.fail(toolFailure(name, found.refused)) : Effect.succeed(found.walls)),
  )
}

interface Ended {
  readonly exit: ProcessExit
  readonly timedOut: boolean
  readonly durationMs: number
}

const describe = ({ exit, timedOut }: Ended, seconds: number): string | undefined => {
  if (timedOut)
    return `Timed out after ${seconds} s; the command and what it started were ended. For longer work set timeout.`
  if (exit.signal !== null) return `Ended by signal ${exit.signal}.`
  return exit.exitCode === 0 ? undefined : `Exit code ${exit.exitCode}.`
}

/** What a failure may come from that the command cannot know of. */
const wallNote = ({ workspace: { sandbox } }: ToolContext): string =>
  ` It ran in a sandbox: only the workspace and a /tmp of its own are writable, keys in the home directory are not there, ${
    sandbox?.network === false ? "there is no network, " : ""
  }and what it started has ended.`

interface Presented {
  readonly capture: OutputCapture
  readonly file: OutputFile
  readonly ended: Ended
  readonly seconds: number
  /** Of a command inside walls, for the case that it failed. */
  readonly wallNote: string
}

const present = ({ capture, ended, file, seconds, wallNote }: Presented): ToolResult => {
  const { path = null } = file
  const saved =
    path === null
      ? `it could not be saved: ${file.incomplete}`
      : `saved in ${path} (${sizeText(file.bytes)}${file.incomplete === undefined ? "" : `, incomplete: ${file.incomplete}`}), see it with read or grep`
  const shown = readable(
    capture.text(
      (omitted) => `[… ${omitted.toLocaleString("en-US")} characters left out; the whole output is ${saved} …]`,
    ),
  ).replace(/\n+$/, "")
  const note = describe(ended, seconds)
  const body = shown === "" ? "(no output)" : shown
  const { exitCode, signal } = ended.exit
  const facts = {
    exitCode,
    signal,
    timedOut: ended.timedOut,
    truncated: capture.truncated,
    fullOutputPath: path,
  }
  return {
    output: [text(note === undefined ? body : `${body}\n\n[${note}${wallNote}]`)],
    structuredOutput: { ...facts, output: shown },
    details: { ...facts, bytes: capture.bytes, durationMs: ended.durationMs },
    isError: note !== undefined,
  }
}

const execute = (args: typeof Parameters.Type, context: ToolContext): Effect.Effect<ToolResult, ToolFailure> =>
  Effect.gen(function* () {
    const bytes = Buffer.byteLength(args.command)
    if (bytes > maxCommandBytes) {
      const message = `command: expected at most ${sizeText(maxCommandBytes)}, got ${sizeText(bytes)}. Write it to a file and run that.`
      return yield* Effect.fail(toolFailure(name, message))
    }
    if (args.command.includes("\0")) {
      return yield* Effect.fail(toolFailure(name, "command: expected text without zero bytes"))
    }
    const seconds = args.timeout ?? defaultSeconds
    const capture = new OutputCapture(captureLimits)
    const live = new LiveOutput()
    const file = yield* Effect.acquireRelease(
      Effect.sync(() => new OutputFile(maxFileBytes)),
      (open) => Effect.promise(() => open.close()),
    )
    const delivery = yield* Effect.forkScoped(live.deliver(context.emit))
    const walls = yield* wallsOf(context)
    const began = yield* Clock.currentTimeMillis
    let finished = false
    const group = yield* Effect.acquireRelease(
      start(args.command, context, walls, (chunk) => {
        live.push(capture.push(chunk))
        return file.started || capture.overflowing ? file.append(capture.release()) : undefined
      }),
      // A cancelled call ends everything that it started; what a finished one left in the background stays.
      (running) => (finished ? Effect.void : Effect.promise(() => running.stop(graceMs))),
    )
    const exited = Effect.promise(() => group.exit)
    const inTime = yield* Effect.timeoutOption(exited, seconds * 1000)
    if (Option.isNone(inTime)) yield* Effect.promise(() => group.stop(graceMs))
    const exit = Option.isSome(inTime) ? inTime.value : yield* exited
    finished = true
    live.push(capture.end())
    live.end()
    yield* Fiber.join(delivery)
    if (capture.truncated || file.started) yield* Effect.promise(() => file.append(capture.release()))
    const durationMs = (yield* Clock.currentTimeMillis) - began
    const ended = { exit, timedOut: Option.isNone(inTime), durationMs }
    return present({ capture, file, ended, seconds, wallNote: walls === null ? "" : wallNote(context) })
  }).pipe(Effect.scoped)

export const bashTool = defineTool({
  name,
  description: [
    "Runs a command with bash in the workspace root and gives its output (stdout and stderr together) and its exit code. There is no input and no terminal.",
    "Long output keeps its start and end and is saved to a file that the result names.",
    "A background process (&) outlives the call, but not in a sandbox; send its output to a file. Every call is a new shell: cd and variables do not carry over.",
    "To look at files prefer read, grep, find and ls.",
  ].join(" "),
  parameters: Parameters,
  effects: ["exec"],
  replay: "unsafe",
  execute,
})
