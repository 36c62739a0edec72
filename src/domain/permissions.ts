/**
 * What an execution mode lets a tool do. The decision depends only on the effects that the tool states and the mode, and never loosens as
 * the mode is tightened: everything that `plan` allows `accept-edits` allows, and so on to `auto`.
 */
import type { ExecutionMode } from "./document.ts"

/** What a call may touch. */
export type ToolEffect = "read" | "fs_write" | "exec" | "net_read" | "net_write" | "state_write"

const allowed: { readonly [mode in ExecutionMode]: ReadonlySet<ToolEffect> } = {
  plan: new Set(["read", "net_read"]),
  "accept-edits": new Set(["read", "net_read", "state_write"]),
  auto: new Set(["read", "net_read", "state_write", "fs_write", "exec", "net_write"]),
}

/** File tools that `accept-edits` allows although they write. */
const edits: ReadonlySet<string> = new Set(["write", "edit", "artifact_get"])

/** Why a call is blocked, or null when it may go ahead. A tool that states no effects counts as doing everything. */
export const blockReason = (mode: ExecutionMode, tool: string, effects: ReadonlyArray<ToolEffect>): string | null => {
  if (mode === "accept-edits" && edits.has(tool)) return null
  const stated: ReadonlyArray<ToolEffect> = effects.length === 0 ? ["exec"] : effects
  const beyond = stated.filter((effect) => !allowed[mode].has(effect))
  if (beyond.length === 0) return null
  return `Blocked: the mode "${mode}" does not allow ${tool} (${beyond.join(", ")}). ${
    mode === "plan" ? "Only reading is allowed." : "Reading and editing files are allowed."
  }`
}
