/**
 * What one incarnation of a conversation's actor works with, taken from its environment when it starts.
 */
import type { Clock } from "effect"
import type { HarnessesService } from "../../harness/registry.ts"
import type { ModelsService } from "../../models/model.ts"
import type { StoreService } from "../../storage/store.ts"
import type { ToolsService } from "../../tools/tools.ts"
import type { Watching } from "./observe.ts"
import type { ConversationSettingsService } from "./settings.ts"

export interface Services {
  readonly store: StoreService
  readonly models: ModelsService
  readonly tools: ToolsService
  readonly settings: ConversationSettingsService
  readonly harnesses: HarnessesService | null
  /** The node's default model, "" where it has none. */
  readonly defaultModel: string
  readonly clock: Clock.Clock
  readonly random: () => number
  /** Who looks at the work; null: nobody. */
  readonly watching: Watching | null
  /** Whether log lines are written. */
  readonly logs: boolean
}
