/**
 * Plugin GitCheckpoint: before the first mutation of a turn what is there is kept and committed, so that `super-pi undo` and `/undo` restore
 * it exactly; docs/undo.md. Nothing of the repository is touched: not its index, stash, refs or objects. Contents are kept in the data
 * directory; of files that git has byte for byte a copy is made only when a command changes them.
 */
import { Effect, Either, Schema } from "effect"
import { text } from "../../domain/message.ts"
import { Store, type StoreService } from "../../storage/store.ts"
import { toolFailure } from "../../tools/define.ts"
import type { ToolResult, Workspace } from "../../tools/tool.ts"
import { resolvePath } from "../../tools/workspace.ts"
import { definePlugin } from "../define.ts"
import type { ToolCallView } from "../plugin.ts"
import { Blobs } from "./git-checkpoint/blobs.ts"
import { type CallToWatch, Journal, type Reach } from "./git-checkpoint/journal.ts"
import { defaultLimits, ownPaths, skipOf, storeDirectory } from "./git-checkpoint/scope.ts"

const count = (most: number, fallback: number) =>
  Schema.optionalWith(Schema.Int.pipe(Schema.between(0, most)), { default: () => fallback })

const GitCheckpointOptions = Schema.Struct({
  enabled: Schema.optionalWith(Schema.Boolean, { default: () => true }),
  /** Whether the workspace is looked over before and after commands and other tools that may change anything. */
  commands: Schema.optionalWith(Schema.Boolean, { default: () => true }),
  /** A call whose checkpoint cannot be taken is refused; default: it runs, and a notice says that it cannot be undone. */
  required: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  /** Files and directories of a workspace beyond which commands are not watched. */
  maxFiles: count(10_000_000, defaultLimits.maxEntries),
  /** Bytes of one file beyond which a command's change of it cannot be undone. */
  maxFileBytes: count(2 ** 40, defaultLimits.maxFileBytes),
  /** Bytes that are copied before one command at most. */
  maxBytes: count(2 ** 40, defaultLimits.maxBytes),
  /** More names of directories that are not looked into. */
  skip: Schema.optionalWith(Schema.Array(Schema.NonEmptyString), { default: () => [] }),
})

/** Effects that change no file. */
const harmless: ReadonlySet<string> = new Set(["read", "net_read", "net_write", "state_write"])

/** The argument of a tool that is the only path it changes. */
const pathArgument: Readonly<Record<string, string>> = { write: "path", edit: "path", artifact_get: "to_path" }

/** What a call may change, or null for nothing. */
const reachOf = (call: ToolCallView, workspace: Workspace): Effect.Effect<Reach | null> => {
  const { args, effects, name } = call
  if (effects.length > 0 && effects.every((effect) => harmless.has(effect))) return Effect.succeed(null)
  const argument = pathArgument[name]
  const path = argument === undefined ? undefined : args[argument]
  if (typeof path !== "string") return Effect.succeed<Reach>({ type: "workspace" })
  // A path that does not resolve is one that the tool will refuse.
  return Effect.map(Effect.either(resolvePath(workspace, path)), (resolved) =>
    Either.isLeft(resolved) ? null : { type: "paths", paths: [resolved.right.canonical] },
  )
}

const refused = (tool: string, reason: string): ToolResult => ({
  output: [text(toolFailure(tool, `${tool}: not run, because no checkpoint could be taken: ${reason}`).message)],
  isError: true,
})

/** One instance knows the conversations of each database of the process. */
export const makeGitCheckpoint = () => {
  const journals = new WeakMap<StoreService, Journal>()
  const journalOf = (store: StoreService): Journal => {
    const known = journals.get(store) ?? new Journal()
    journals.set(store, known)
    return known
  }
  /** Workspaces of which it was said that they are too large. */
  const warned = new Set<string>()
  let swept = false
  return definePlugin<typeof GitCheckpointOptions.Type, typeof GitCheckpointOptions.Encoded, Store>({
    name: "git-checkpoint",
    aliases: ["checkpoint"],
    description: "Keeps what was there before a turn changes files, for undo; the repository is not touched",
    options: GitCheckpointOptions,
    deadlineMs: 120_000,
    hooks: {
      beforeAgentStart: (_run, { conversation }) =>
        Effect.map(Store, (store) => {
          journalOf(store).runBegins(conversation)
          return undefined
        }),
      wrapTool: (call, run, context) =>
        Effect.gen(function* () {
          const { conversation, notify, options, places, workspace } = context
          const reach = options.enabled ? yield* reachOf(call, workspace) : null
          if (reach === null || (reach.type === "workspace" && !options.commands)) return yield* run
          const store = yield* Store
          const directory = storeDirectory(places.dataDir)
          if (!swept) {
            swept = true
            yield* Effect.forkDaemon(Effect.promise(() => new Blobs(directory).sweep(Date.now()).catch(() => 0)))
          }
          const watched: CallToWatch = { callId: call.id, tool: call.name, reach }
          const scanning = {
            root: workspace.root,
            own: ownPaths(store.location, places.dataDir),
            skip: skipOf(options.skip),
            limits: {
              maxEntries: options.maxFiles,
              maxFileBytes: options.maxFileBytes,
              maxBytes: options.maxBytes,
            },
          }
          const begun = yield* Effect.either(journalOf(store).begin(store, conversation, watched, directory, scanning))
          if (Either.isLeft(begun)) {
            if (options.required) return refused(call.name, begun.left.message)
            yield* notify("warning", `${call.name} cannot be undone: no checkpoint was taken (${begun.left.message})`)
            return yield* run
          }
          const { end, warning } = begun.right
          if (warning !== null && !warned.has(workspace.root)) {
            warned.add(workspace.root)
            yield* notify("warning", warning)
          }
          // Also of a call that is cancelled: what it changed by then can be undone.
          const ended = Effect.catchAll(end, (error) =>
            notify("warning", `what ${call.name} changed was not noted down (${error.message}); undo looks for it`),
          )
          return yield* Effect.ensuring(run, ended)
        }),
      afterTools: (_calls, { conversation }) => Effect.map(Store, (store) => journalOf(store).turnEnds(conversation)),
    },
  })
}

export const gitCheckpoint = makeGitCheckpoint()
