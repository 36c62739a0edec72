/**
 * A harness: a named persona. It is a set of plugins and defaults for the choices of a conversation; the engine knows nothing of personas.
 * Each choice comes from the caller, else the harness, else the settings, else a fallback.
 */
import type { Effort, ExecutionMode } from "../domain/document.ts"
import type { HarnessCapabilities } from "../domain/harness-view.ts"
import type { WorkspaceSpec } from "../domain/workspace-spec.ts"
import type { PluginSpec } from "./plugin.ts"

export type { HarnessCapabilities, WorkspaceSpec }

/** Which tools of the node and of its plugins a harness offers. */
export type ToolLoadout = "all" | { readonly only: ReadonlyArray<string> } | { readonly except: ReadonlyArray<string> }

export interface Harness {
  readonly id: string
  readonly name: string
  readonly description: string
  /** In order. */
  readonly plugins: ReadonlyArray<PluginSpec>
  readonly model?: string
  readonly effort?: Effort
  readonly mode?: ExecutionMode
  /** The highest mode that it allows; no flag and no request lifts it. */
  readonly maxMode?: ExecutionMode
  /** Default `local`. */
  readonly workspace?: WorkspaceSpec
  /** Default `all`. */
  readonly tools?: ToolLoadout
  /** The core of the system prompt. */
  readonly prompt: string
}
