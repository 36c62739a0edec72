/**
 * What an application gives to `SuperPi.layer`, and the checks of it that need no service. Types follow what is given: the layer needs exactly
 * what the tools, tasks, workers and layers among the options need, and fails with what those layers fail with.
 */
import { stat } from "node:fs/promises"
import { isAbsolute } from "node:path"
import { Effect, Either, type Layer, Schema } from "effect"
import type { Policy } from "./actors/conversation/machine/data.ts"
import { type QueueOptions, queueSettings } from "./actors/queue/settings.ts"
import type { QueueWorker } from "./actors/queue/worker.ts"
import type { TaskDefinition } from "./actors/task/index.ts"
import type { ConfiguredPaths } from "./cli/paths.ts"
import type { Prices } from "./domain/budget.ts"
import type { Effort, ExecutionMode } from "./domain/document.ts"
import { errorCode } from "./domain/error-code.ts"
import type { AnyPlugin } from "./harness/define.ts"
import { quoted } from "./harness/define.ts"
import type { Harness } from "./harness/harness.ts"
import type { Models } from "./models/model.ts"
import type { ModelsOptions } from "./models/service.ts"
import type { Observer } from "./observability/observer.ts"
import type { ArtifactStore } from "./storage/artifacts.ts"
import type { Store } from "./storage/store.ts"
import { type DatabaseServer, serverSettingsOf } from "./super-pi-server.ts"
import { BuiltinTools } from "./tools/builtin-tools.ts"
import type { Tool } from "./tools/tool.ts"
import type { WorkspaceSettings } from "./tools/workspace-settings.ts"

/** An option that cannot work. `path` names it, for example `tools[1].name`. */
export class InvalidOptions extends Schema.TaggedError<InvalidOptions>()("InvalidOptions", {
  path: Schema.String,
  expected: Schema.String,
  actual: Schema.String,
}) {
  override get message() {
    return `${this.path}: expected ${this.expected}, got ${this.actual}`
  }
}

/** A database file that this process owns while the layer lives; see docs/storage.md. */
export interface DatabaseFile {
  /** It and its directory are created where they are missing. */
  readonly path: string
  /** `NORMAL` (default): an answered commit survives the process. `FULL`: a power cut as well. */
  readonly synchronous?: "NORMAL" | "FULL"
  /** Answers on a socket beside the file, so that `super-pi` and other processes can attach. Default true. */
  readonly serve?: boolean
}

/** `memory` is for tests: nothing outlives the layer. A layer brings an engine of the application's own. */
export type StorageOption = DatabaseFile | DatabaseServer | "memory" | Layer.Layer<Store, unknown, unknown>

/** What `Models` is made from; `env` is `process.env` where it is not given. A layer brings a service of the application's own. */
export type ModelsOption = Partial<ModelsOptions> | Layer.Layer<Models, unknown, unknown>

/** What conversations run with where they say nothing. */
export interface ConversationDefaults {
  /** `provider/model`, or a plain name where that is unambiguous. */
  readonly model?: string
  readonly effort?: Effort
  /** What tools may do. Default `auto`. */
  readonly mode?: ExecutionMode
  /** Absolute path of a directory. Default: the current one. */
  readonly cwd?: string
  /** Whether file tools stay inside the workspace. Default true. */
  readonly confined?: boolean
  /** US dollars per million tokens by `provider/model`, for budgets with a `maxCost`. Default none. */
  readonly prices?: Prices
  /** Roots of knowledge, scratch directories, walls around commands; see docs/workspaces.md. */
  readonly workspaces?: Partial<WorkspaceSettings>
  /** Retries, limits, times; see {@link Policy}. */
  readonly policy?: Partial<Policy>
  /** How long an idle conversation stays in memory, in ms. Default 30,000. */
  readonly idleMs?: number
}

type AnyTool = Tool<unknown>
type AnyTask = TaskDefinition<never, unknown, unknown, unknown>
type AnyWorker = QueueWorker<unknown>

export interface SuperPiOptions<
  T extends ReadonlyArray<AnyTool>,
  D extends ReadonlyArray<AnyTask>,
  W extends ReadonlyArray<AnyWorker>,
  S extends StorageOption,
  M extends ModelsOption,
> {
  readonly storage: S
  /** Default: the built-in providers, configured by the environment. */
  readonly models?: M
  /** Tools of the application, offered behind the built-in ones. */
  readonly tools?: T
  /** All (default), none, or those of the given names. */
  readonly builtinTools?: boolean | ReadonlyArray<string>
  /** Kinds of tasks of the application, registered when the layer is built; open tasks of these kinds go on then. */
  readonly tasks?: D
  /** Workers of durable queues, each for jobs of its name. */
  readonly workers?: W
  /** Queues of the application, and other concurrencies of the engine's own; see docs/queues.md. */
  readonly queues?: Readonly<Record<string, QueueOptions>>
  /** Where artifacts are. Default: in the database. */
  readonly artifacts?: Layer.Layer<ArtifactStore>
  readonly defaults?: ConversationDefaults
  /** The harness of conversations that name none. Default none: they have the tools and the prompt of the node, and no plugins. */
  readonly harness?: string
  /** Harnesses of the application beside the built-in ones; see docs/harnesses.md. */
  readonly extraHarnesses?: ReadonlyArray<Harness>
  /** Plugins of the application, for its harnesses; they may ask for what the layer provides. See docs/plugins.md. */
  readonly extraPlugins?: ReadonlyArray<AnyPlugin>
  /** Where plugins find their files. Default: as the command line, from the environment. */
  readonly paths?: ConfiguredPaths
  /** Name of this node in task rows. Default: host and process id. */
  readonly node?: string
  /** Who counts turns, requests and calls; see docs/observability.md. Default nobody. */
  readonly observer?: Observer
  /** What this process is, for whoever finds the database owned. Default `super-pi application`. */
  readonly program?: string
}

type ToolNeeds<T> = T extends Tool<infer R> ? R : never
type TaskNeeds<D> = D extends TaskDefinition<never, unknown, unknown, infer R> ? R : never
type WorkerNeeds<W> = W extends QueueWorker<infer R> ? R : never
type LayerNeeds<L> = L extends Layer.Layer<never, unknown, infer R> ? R : never
/** What a layer among the options fails with. */
export type LayerError<L> = L extends Layer.Layer<never, infer E, unknown> ? E : never

/** The services that an application's options need. */
export type OptionNeeds<
  T extends ReadonlyArray<AnyTool>,
  D extends ReadonlyArray<AnyTask>,
  W extends ReadonlyArray<AnyWorker>,
  S,
  M,
> = ToolNeeds<T[number]> | TaskNeeds<D[number]> | WorkerNeeds<W[number]> | LayerNeeds<S> | LayerNeeds<M>

/** The built-in tools that are wanted. */
export const builtinsOf = (wanted: boolean | ReadonlyArray<string> = true) =>
  BuiltinTools.list.filter(({ spec }) => (typeof wanted === "boolean" ? wanted : wanted.includes(spec.name)))

const fault = (path: string, expected: string, actual: string): InvalidOptions =>
  new InvalidOptions({ path, expected, actual })

/** Where a name comes for the second time, or -1. */
const firstTwice = (names: ReadonlyArray<string>): number => names.findIndex((name, at) => names.indexOf(name) < at)

/** Options of any types. */
export type AnyOptions = SuperPiOptions<
  ReadonlyArray<AnyTool>,
  ReadonlyArray<AnyTask>,
  ReadonlyArray<AnyWorker>,
  StorageOption,
  ModelsOption
>

/** What is wrong with the queues and their workers, or null. */
const queueFault = ({ queues = {}, workers = [] }: AnyOptions): InvalidOptions | null => {
  for (const [name, { concurrency }] of Object.entries(queues)) {
    if (!/^[a-zA-Z0-9_.-]{1,100}$/.test(name)) {
      return fault("queues", "names of 1 to 100 letters, digits, underscores, dashes and dots", quoted(name))
    }
    if (!Number.isSafeInteger(concurrency) || concurrency < 1) {
      return fault(`queues.${name}.concurrency`, "a whole number of at least 1", String(concurrency))
    }
  }
  const known = Object.keys(queueSettings(queues).queues)
  const at = workers.findIndex((worker) => !known.includes(worker.queue))
  if (at >= 0) return fault(`workers[${at}].queue`, `one of ${known.join(", ")}`, quoted(workers[at]?.queue))
  const twice = firstTwice(workers.map(({ name, queue }) => `${queue}/${name}`))
  return twice < 0
    ? null
    : fault(`workers[${twice}].name`, "a name that no other worker of its queue has", quoted(workers[twice]?.name))
}

/** What is wrong with the options by themselves, or null. */
const optionFault = (options: AnyOptions): InvalidOptions | null => {
  const { builtinTools, node, storage, tasks = [], tools = [] } = options
  const known = BuiltinTools.list.map(({ spec }) => spec.name)
  if (Array.isArray(builtinTools)) {
    const at = builtinTools.findIndex((name) => !known.includes(name))
    if (at >= 0) return fault(`builtinTools[${at}]`, `one of ${known.join(", ")}`, quoted(builtinTools[at]))
  }
  const builtin = builtinsOf(builtinTools).map(({ spec }) => spec.name)
  for (const [at, { spec }] of tools.entries()) {
    const path = `tools[${at}].name`
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(spec.name)) {
      return fault(path, "1 to 64 letters, digits, underscores or dashes", quoted(spec.name))
    }
    if (builtin.includes(spec.name)) {
      const expected = "a name that no built-in tool has (builtinTools chooses those)"
      return fault(path, expected, quoted(spec.name))
    }
  }
  const tool = firstTwice(tools.map(({ spec }) => spec.name))
  if (tool >= 0) return fault(`tools[${tool}].name`, "a name that no other tool has", quoted(tools[tool]?.spec.name))
  const task = firstTwice(tasks.map(({ kind }) => kind))
  if (task >= 0) return fault(`tasks[${task}].kind`, "a kind that no other task has", quoted(tasks[task]?.kind))
  if (node === "") return fault("node", "a name", quoted(node))
  if (typeof storage === "object" && "path" in storage && storage.path === "") {
    return fault("storage.path", "the path of a database file", quoted(storage.path))
  }
  if (typeof storage === "object" && ("url" in storage || "postgres" in storage)) {
    const settings = serverSettingsOf(storage)
    if (Either.isLeft(settings)) return fault("storage.url", settings.left.expected, settings.left.got)
  }
  return queueFault(options)
}

/** Fails with the first option that cannot work. */
export const checkOptions = (options: AnyOptions): Effect.Effect<void, InvalidOptions> =>
  Effect.gen(function* () {
    const wrong = optionFault(options)
    if (wrong !== null) return yield* wrong
    const { storage } = options
    if (typeof storage === "object" && "path" in storage) {
      const found = yield* statOf(storage.path)
      if (found === "directory") return yield* fault("storage.path", "the path of a database file", "a directory")
    }
    const cwd = options.defaults?.cwd
    if (cwd === undefined) return
    const expected = "the absolute path of a directory"
    if (!isAbsolute(cwd)) return yield* fault("defaults.cwd", expected, quoted(cwd))
    const found = yield* statOf(cwd)
    if (found !== "directory") return yield* fault("defaults.cwd", expected, `${quoted(cwd)} (${found})`)
  })

/** `directory`, `not a directory`, or the code of why it cannot be looked at. */
const statOf = (path: string): Effect.Effect<string> =>
  Effect.promise(() =>
    stat(path).then(
      (found) => (found.isDirectory() ? "directory" : "not a directory"),
      (cause: unknown) => errorCode(cause) || String(cause),
    ),
  )
