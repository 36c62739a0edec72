/**
 * `super-pi undo [ID]`: takes back what the agent changed in a workspace, or lists what can be taken back. This goes through the owner of the
 * database.
 */
import { realpathSync } from "node:fs"
import { relative } from "node:path"
import { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { CheckpointView, UndoResult } from "../domain/checkpoint.ts"
import type { Failure } from "../domain/failure.ts"
import { ConversationId } from "../domain/ids.ts"
import { ago } from "../protocols/terminal/format.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { CommandFailure, ExitCode, usageFailure } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** Conversations that are looked through for one that changed the current directory. */
const conversationsLookedAt = 50
/** Paths that one checkpoint of a list names. */
const pathsListed = 5

const marks = { created: "+", changed: "~", deleted: "-" } as const

const shown = (root: string, path: string): string => {
  const below = relative(root, path)
  return oneLine(below === "" ? "." : below.startsWith("..") ? path : below)
}

/** A checkpoint in a line, and the paths that it changed. Pure. */
export const checkpointLines = (view: CheckpointView, now: number): ReadonlyArray<string> => {
  const what =
    view.kind === "undo"
      ? view.undoes.length === 0
        ? "an undo that was cut off"
        : `undo of ${view.undoes.join(", ")}`
      : `run ${view.run}: ${view.tools.join(", ") || "cut off"}`
  const state = view.undone_by === null ? "" : `, undone by ${view.undone_by}`
  const open = view.open ? ", a call of it did not end" : ""
  const files = `${view.files} ${view.files === 1 ? "path" : "paths"}`
  const paths = view.paths
    .slice(0, pathsListed)
    .map(({ change, kept, path }) => `    ${marks[change]} ${shown(view.root, path)}${kept ? "" : " (not kept)"}`)
  const more = view.files > pathsListed ? [`    … and ${view.files - pathsListed} more`] : []
  return [`${String(view.id).padStart(3)}  ${ago(view.at, now)}  ${what}  ${files}${state}${open}`, ...paths, ...more]
}

/** What an undo did, in lines. Pure. */
export const undoLines = (result: UndoResult): ReadonlyArray<string> => {
  const { id, left, restored, undone } = result
  const count = `${restored.length} ${restored.length === 1 ? "path is" : "paths are"} as before`
  const head =
    undone.length === 0
      ? `the undo was not completed: ${count}`
      : `undone: checkpoint ${undone.join(", ")}; ${count}; bring it back with: super-pi undo ${id}`
  return [head, ...left.map(({ path, reason }) => `left as it is: ${oneLine(path)}: ${oneLine(reason)}`)]
}

const checkpointOf = (invocation: Invocation): number | null => {
  const [word] = invocation.words
  if (word === undefined) return null
  const id = /^\d{1,9}$/.test(word) ? Number(word) : 0
  if (id < 1) throw usageFailure(`ID: expected the number of a checkpoint, got "${word}"; see: super-pi undo --list`)
  return id
}

/** The most recent conversation that changed something in this directory, or null. */
const latestIn = (sessions: SessionsService, directory: string): Effect.Effect<ConversationId | null, Failure> =>
  Effect.gen(function* () {
    for (const { conversation_id: id } of yield* sessions.list({ limit: conversationsLookedAt })) {
      const views = yield* sessions.checkpoints({ conversationId: id })
      if (views.some(({ root }) => root === directory)) return id
    }
    return null
  })

const nothingIn = (directory: string): string => `no conversation changed anything in ${directory}`
const advice = "name the conversation with --conversation, or change to its workspace"

export const main = async (invocation: Invocation): Promise<number> => {
  const checkpoint = checkpointOf(invocation)
  const given = invocation.get(option.conversation)
  const json = invocation.get(option.json) === true
  const options = nodeOptionsOf(invocation)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const directory = realpathSync(options.cwd)
      const conversationId = given === undefined ? yield* latestIn(sessions, directory) : ConversationId.make(given)
      if (conversationId === null) {
        if (invocation.get(option.list) !== true)
          return yield* Effect.fail(new CommandFailure(`${nothingIn(directory)}; ${advice}`))
        process.stdout.write(`${json ? "[]" : nothingIn(directory)}\n`)
        return ExitCode.ok
      }
      if (invocation.get(option.list) === true) {
        const views = yield* sessions.checkpoints({ conversationId })
        const lines = views.flatMap((view) => checkpointLines(view, Date.now()))
        const text = [`conversation ${conversationId}`, ...(lines.length === 0 ? ["nothing to undo"] : lines)].join(
          "\n",
        )
        process.stdout.write(`${json ? JSON.stringify(views) : text}\n`)
        return ExitCode.ok
      }
      const force = invocation.get(option.force) === true
      const result = yield* sessions.undo({ conversationId, checkpoint, force })
      process.stdout.write(`${json ? JSON.stringify(result) : undoLines(result).join("\n")}\n`)
      return result.undone.length === 0 ? ExitCode.failure : ExitCode.ok
    }),
  )
}
