/**
 * A full-screen client of somebody else's making: an executable `super-pi-tui` on the PATH takes the terminal, against a JSON-RPC server of
 * this process. How it is given the address is in docs/cli.md; its exit code is ours.
 *
 * 1. The server listens on a unix socket of mode 0600 in a directory of mode 0700; both go when the client has ended.
 * 2. The client owns the terminal: Ctrl-C is its own, a SIGTERM of this process ends it first.
 * 3. Only absolute directories of the PATH count: what lies in the working directory is not run.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { accessSync, constants, mkdtempSync, rmSync, statSync } from "node:fs"
import { constants as system, tmpdir } from "node:os"
import { delimiter, isAbsolute, join } from "node:path"
import { Effect, type Scope } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { SessionState } from "../domain/event.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { choiceOf, openConversation } from "./conversation.ts"
import { CommandFailure, messageOf } from "./exit.ts"
import { modelOf } from "./model-check.ts"
import { openSessions } from "./node.ts"
import { protocolServiceOf } from "./protocol-service.ts"
import { runCommand } from "./runtime.ts"

const program = "super-pi-tui"
/** Set for the client, and what tells that we run inside of one. */
const socketVariable = "SUPER_PI_RPC_SOCKET"
/** Between a SIGTERM and a SIGKILL. */
const grace = "3 seconds"

/** Absolute path of the client, or null where there is none, or this process runs inside of one. */
export const findTui = (
  env: Readonly<Record<string, string | undefined>>,
  platform = process.platform,
): string | null => {
  if (platform === "win32" || (env[socketVariable] ?? "") !== "") return null
  for (const directory of (env.PATH ?? "").split(delimiter)) {
    if (!isAbsolute(directory)) continue
    const file = join(directory, program)
    try {
      accessSync(file, constants.X_OK)
      if (statSync(file).isFile()) return file
    } catch {
      // Not there, or not ours to run.
    }
  }
  return null
}

const runtimeDirectory = (env: Readonly<Record<string, string | undefined>>): string => {
  const own = env.XDG_RUNTIME_DIR ?? ""
  return isAbsolute(own) && statSync(own, { throwIfNoEntry: false })?.isDirectory() === true ? own : tmpdir()
}

const privateDirectory: Effect.Effect<string, never, Scope.Scope> = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(runtimeDirectory(process.env), "super-pi-"))),
  (directory) => Effect.sync(() => rmSync(directory, { recursive: true, force: true })),
)

const ended = (child: ChildProcess): Effect.Effect<number, CommandFailure> =>
  Effect.async((resume) => {
    if (child.exitCode !== null) return resume(Effect.succeed(child.exitCode))
    child.once("error", (error) =>
      resume(
        Effect.fail(
          new CommandFailure(`${program} could not be started: ${messageOf(error)}; --no-tui does without it`),
        ),
      ),
    )
    child.once("close", (code, signal) =>
      resume(Effect.succeed(code ?? 128 + (signal === null ? 0 : system.signals[signal]))),
    )
  })

const running = (child: ChildProcess): boolean =>
  child.pid !== undefined && child.exitCode === null && child.signalCode === null

/** A client that does not leave when it is told to is ended. */
const stop = (child: ChildProcess): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (!running(child)) return Effect.void
    child.kill("SIGTERM")
    return Effect.ignore(ended(child)).pipe(
      Effect.timeout(grace),
      Effect.catchAll(() => Effect.sync(() => void child.kill("SIGKILL"))),
    )
  })

/** What was begun for the client and never used does not stay. */
const removeUnused = (sessions: SessionsService, { conversation_id: conversationId, entries }: SessionState) =>
  entries > 0
    ? Effect.void
    : sessions.state({ conversationId }).pipe(
        Effect.flatMap((now) =>
          now.entries === 0 && now.queued.length === 0 && now.state === "idle"
            ? sessions.remove({ conversationId })
            : Effect.void,
        ),
        Effect.ignore,
      )

/** Runs the client at `file` until it ends. */
export const runTui = (file: string, invocation: Invocation): Promise<number> =>
  runCommand((signals) =>
    Effect.gen(function* () {
      const choice = choiceOf(invocation)
      const options = nodeOptionsOf(invocation)
      yield* modelOf(choice, options)
      const sessions = yield* openSessions(options)
      const session = yield* openConversation(sessions, choice, null)
      const { serveUnix } = yield* Effect.promise(() => import("../protocols/jsonrpc/serve.ts"))
      const socket = join(yield* privateDirectory, "rpc.sock")
      yield* serveUnix(socket, yield* protocolServiceOf(sessions, options, "person"))
      const conversation = String(session.conversation_id)
      signals.onInterrupt(() => {})
      const child = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn(file, ["--socket", socket, "--conversation", conversation], {
            stdio: "inherit",
            env: { ...process.env, [socketVariable]: socket, SUPER_PI_CONVERSATION_ID: conversation },
          }),
        ),
        stop,
      )
      const code = yield* ended(child)
      yield* removeUnused(sessions, session)
      return code
    }),
  )
