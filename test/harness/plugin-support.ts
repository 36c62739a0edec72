/**
 * What tests of plugins share: a temporary project with files, and the context that a hook is given.
 */
import { join } from "node:path"
import { Effect, Schema } from "effect"
import type { AgentDocument, ExecutionMode } from "../../src/domain/document.ts"
import { ConversationId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import type { HookContext, Plugin } from "../../src/harness/plugin.ts"
import { temporaryDirectory, writeFiles } from "../tools/support.ts"

export interface Notice {
  readonly level: "info" | "warning" | "error"
  readonly message: string
}

export interface Project {
  /** Absolute root of a repository. */
  readonly root: string
  readonly configDir: string
  readonly dataDir: string
  readonly notices: Array<Notice>
  /** A context of a conversation in `cwd`, relative to the root. */
  readonly context: <O, R>(
    plugin: Plugin<O, R>,
    given?: {
      readonly options?: JsonObject
      readonly cwd?: string
      readonly conversation?: number
      readonly agent?: AgentDocument
      readonly mode?: ExecutionMode
      readonly depth?: number
      readonly env?: Readonly<Record<string, string>>
      readonly discoveryRoots?: ReadonlyArray<string>
    },
  ) => HookContext<O>
}

/** A repository with `files`; names under `~config/` go into the configuration directory, under `~outside/` beside the repository. */
export const projectWith = (files: Readonly<Record<string, string | Uint8Array>> = {}) =>
  Effect.gen(function* () {
    const base = yield* temporaryDirectory
    const [root, configDir, dataDir] = [join(base, "repo"), join(base, "config"), join(base, "data")]
    yield* writeFiles(base, { "repo/.git/": "", "config/": "", "data/": "" })
    for (const [path, content] of Object.entries(files)) {
      const inBase = path.startsWith("~config/")
        ? path.replace("~config", "config")
        : path.startsWith("~outside/")
          ? path.replace("~outside", "outside")
          : `repo/${path}`
      yield* writeFiles(base, { [inBase]: content })
    }
    const notices: Array<Notice> = []
    const project: Project = {
      root,
      configDir,
      dataDir,
      notices,
      context: (plugin, given = {}) => ({
        options: Schema.decodeSync(plugin.options)(given.options ?? {}),
        conversation: ConversationId.make(given.conversation ?? 1),
        harness: "test",
        agent: given.agent ?? {},
        mode: given.mode ?? "auto",
        workspace: { root: join(root, given.cwd ?? ""), confined: true },
        places: { configDir, dataDir, discoveryRoots: given.discoveryRoots ?? [], env: given.env ?? {} },
        depth: given.depth ?? 0,
        notify: (level, message) => Effect.sync(() => void notices.push({ level, message })),
      }),
    }
    return project
  })
