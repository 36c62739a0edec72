/**
 * What the conversations of a node run with where nobody says anything: the defaults that the command line and an embedding application share.
 */
import { hostname, platform, release } from "node:os"
import { defaultPolicy, type Policy } from "./actors/conversation/machine/data.ts"
import type { ConversationSettingsService } from "./actors/conversation/settings.ts"
import type { Prices } from "./domain/budget.ts"
import type { Effort, ExecutionMode } from "./domain/document.ts"
import type { Observer } from "./observability/observer.ts"
import { defaultWorkspaceSettings, type WorkspaceSettings } from "./tools/workspace-settings.ts"

/** How long an idle conversation stays in memory, in ms. */
const idleMs = 30_000

/** The name of this process in task rows. */
const nodeName = (): string => `${hostname()}-${process.pid}`

export const nodeSettings = (options: {
  /** Absolute path of a directory. */
  readonly cwd: string
  readonly node?: string | undefined
  readonly mode?: ExecutionMode | undefined
  readonly effort?: Effort | undefined
  readonly confined?: boolean | undefined
  readonly workspaces?: Partial<WorkspaceSettings> | undefined
  readonly policy?: Partial<Policy> | undefined
  readonly idleMs?: number | undefined
  readonly prices?: Prices | undefined
  readonly observer?: Observer | undefined
  readonly traceModels?: boolean | undefined
}): ConversationSettingsService => ({
  node: options.node ?? nodeName(),
  policy: { ...defaultPolicy, ...options.policy },
  defaultMode: options.mode ?? "auto",
  defaultEffort: options.effort,
  defaultCwd: options.cwd,
  confined: options.confined ?? true,
  workspaces: { ...defaultWorkspaceSettings, ...options.workspaces },
  platform: `${platform()} ${release()}`,
  idleMs: options.idleMs ?? idleMs,
  prices: options.prices ?? {},
  ...(options.observer === undefined ? {} : { observer: options.observer }),
  traceModels: options.traceModels ?? false,
})
