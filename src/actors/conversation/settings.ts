/**
 * What a node's conversations run with where `pi.agent` says nothing.
 */
import { Context } from "effect"
import type { Prices } from "../../domain/budget.ts"
import type { Effort, ExecutionMode } from "../../domain/document.ts"
import type { ConversationId } from "../../domain/ids.ts"
import type { Observer } from "../../observability/observer.ts"
import type { WorkspaceSettings } from "../../tools/workspace-settings.ts"
import type { Children } from "./children-port.ts"
import type { CompactionSlots } from "./compaction-slots.ts"
import type { Policy } from "./machine/data.ts"

export interface ConversationSettingsService {
  /** Name of this node in task rows. */
  readonly node: string
  readonly policy: Policy
  readonly defaultMode: ExecutionMode
  readonly defaultEffort: Effort | undefined
  /** Absolute working directory of conversations that name none. */
  readonly defaultCwd: string
  readonly confined: boolean
  /** Default: no sandbox, no knowledge, scratch directories among the system's temporary files. */
  readonly workspaces?: WorkspaceSettings
  readonly platform: string
  /** An idle conversation without watchers leaves memory after this time. Default 30,000 ms. */
  readonly idleMs: number
  /** Default: the node's queue `compaction`. */
  readonly compactionSlots?: CompactionSlots
  /** Of models, for budgets. Default none. */
  readonly prices?: Prices
  /** Default: the node's conversations. */
  readonly children?: Children
  /** Who counts what happens. Default nobody. */
  readonly observer?: Observer
  /** Requests to models carry the `traceparent` of their span. Default false. */
  readonly traceModels?: boolean
  /** Called when a conversation has become idle after work. Must not throw or wait. */
  readonly onSettled?: (conversation: ConversationId) => void
}

export class ConversationSettings extends Context.Tag("super-pi/ConversationSettings")<
  ConversationSettings,
  ConversationSettingsService
>() {}
