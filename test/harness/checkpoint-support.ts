/**
 * What the tests of checkpoints share: a workspace, calls of the built-in tools through the plugin, and pictures of a directory.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs"
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { CheckpointView } from "../../src/domain/checkpoint.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import type { HookContext, ToolCallView } from "../../src/harness/plugin.ts"
import { listCheckpoints, undo as undoIn } from "../../src/harness/plugins/git-checkpoint/undo.ts"
import { makeGitCheckpoint } from "../../src/harness/plugins/git-checkpoint.ts"
import * as rows from "../../src/storage/conformance/records.ts"
import { makeMemoryStore, memoryDatabase } from "../../src/storage/memory/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import type { ToolResult } from "../../src/tools/tool.ts"
import { Tools } from "../../src/tools/tools.ts"
import { contextOf, temporaryDirectory, writeFiles } from "../tools/support.ts"

/** Everything below a directory: kind, mode and content by path. Modification times do not count. */
export const picture = (root: string, below = ""): Record<string, string> => {
  const seen: Record<string, string> = {}
  for (const name of readdirSync(join(root, below)).sort()) {
    const path = join(below, name)
    const full = join(root, path)
    const stat = lstatSync(full)
    const mode = (stat.mode & 0o7777).toString(8)
    if (stat.isDirectory()) Object.assign(seen, { [path]: `directory ${mode}` }, picture(root, path))
    else if (stat.isSymbolicLink()) seen[path] = `link ${readlinkSync(full)}`
    else seen[path] = `file ${mode} ${createHash("sha256").update(readFileSync(full)).digest("hex")}`
  }
  return seen
}

/** Git in a directory, with a fixed person and no settings of the machine. */
export const gitIn = (root: string, ...args: ReadonlyArray<string>): string =>
  execFileSync("git", args, {
    cwd: root,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      PATH: process.env.PATH,
      HOME: root,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_OPTIONAL_LOCKS: "0",
      GIT_AUTHOR_NAME: "A",
      GIT_AUTHOR_EMAIL: "a@example.org",
      GIT_COMMITTER_NAME: "A",
      GIT_COMMITTER_EMAIL: "a@example.org",
    },
  })

/** A repository with a commit, a staged change, an unstaged one, an untracked and an ignored file, and something on the stash. */
export const makeRepository = (root: string): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* writeFiles(root, {
      ".gitignore": "*.log\nsecret.env\n",
      "src/main.ts": "export const one = 1\n",
      "src/other.ts": "export const two = 2\n",
      "README.md": "# Project\n",
    })
    gitIn(root, "init", "-q", "-b", "main")
    gitIn(root, "config", "user.name", "A")
    gitIn(root, "config", "user.email", "a@example.org")
    gitIn(root, "add", ".")
    gitIn(root, "commit", "-q", "-m", "first")
    yield* writeFiles(root, { "README.md": "# Stashed\n" })
    gitIn(root, "stash", "-q")
    yield* writeFiles(root, { "src/main.ts": "export const one = 11\n" })
    gitIn(root, "add", "src/main.ts")
    yield* writeFiles(root, {
      "src/other.ts": "export const two = 22\n",
      "notes.txt": "mine, untracked\n",
      "secret.env": "KEY=ignored\n",
      "debug.log": "ignored too\n",
    })
  })

export interface World {
  readonly root: string
  readonly dataDir: string
  readonly conversation: ConversationId
  readonly notices: Array<string>
  readonly store: StoreService
  /** One call of a built-in tool through the plugin. */
  readonly tool: (name: string, args: JsonObject) => Effect.Effect<ToolResult>
  /** What a run begins with, and what follows the calls of a turn. */
  readonly runBegins: Effect.Effect<void>
  readonly turnEnds: Effect.Effect<void>
  readonly undo: (id?: number | null, force?: boolean) => ReturnType<typeof undoIn>
  readonly list: Effect.Effect<ReadonlyArray<CheckpointView>>
  /** The same workspace and database in a process that was started anew. */
  readonly restarted: () => World
  readonly wrap: (call: ToolCallView, run: Effect.Effect<ToolResult>) => Effect.Effect<ToolResult>
}

export const worldOf = (
  options: { readonly plugin?: JsonObject; readonly store?: (real: StoreService, root: string) => StoreService } = {},
) =>
  Effect.gen(function* () {
    const base = yield* temporaryDirectory
    const [root, dataDir] = [join(base, "workspace"), join(base, "data")]
    yield* writeFiles(base, { "workspace/": "", "data/": "" })
    const real = yield* makeMemoryStore(memoryDatabase())
    const conversation = ConversationId.make(1)
    yield* real.commit({ conversations: [rows.conversation(conversation)] })
    const tools = yield* Effect.provide(Tools, BuiltinTools.standalone)
    const store = options.store?.(real, root) ?? real
    const notices: Array<string> = []
    let calls = 0
    const make = (): World => {
      const plugin = makeGitCheckpoint()
      const context: HookContext<(typeof plugin.options)["Type"]> = {
        options: Schema.decodeSync(plugin.options)(options.plugin ?? {}),
        conversation,
        harness: "test",
        agent: {},
        mode: "auto",
        workspace: { root, confined: true },
        places: { configDir: base, dataDir, discoveryRoots: [], env: {} },
        depth: 0,
        notify: (_level, message) => Effect.sync(() => void notices.push(message)),
      }
      const { afterTools, beforeAgentStart, wrapTool } = plugin.hooks
      const provided = <A>(effect: Effect.Effect<A, unknown, Store> | undefined) =>
        effect === undefined ? Effect.dieMessage("no hook") : Effect.orDie(Effect.provideService(effect, Store, store))
      const wrap: World["wrap"] = (call, run) => provided(wrapTool?.(call, run, context))
      return {
        root,
        dataDir,
        conversation,
        notices,
        store: real,
        wrap,
        tool: (name, args) =>
          Effect.suspend(() => {
            const tool = tools.get(name)
            if (tool === undefined) return Effect.dieMessage(`no tool ${name}`)
            const call = { id: `call_${++calls}`, name, args, effects: tool.effects }
            const run = Effect.orDie(
              Effect.flatMap(tool.decode(args), (decoded) => tool.execute(decoded, contextOf(context.workspace))),
            )
            return wrap(call, run)
          }),
        runBegins: Effect.asVoid(provided(beforeAgentStart?.({ inputs: [] }, context))),
        turnEnds: provided(afterTools?.([], context)),
        undo: (id = null, force = false) => undoIn(real, conversation, { id, force }),
        list: Effect.orDie(listCheckpoints(real, conversation)),
        restarted: make,
      }
    }
    return make()
  })
