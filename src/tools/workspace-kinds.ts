/**
 * What each kind of workspace can do, and which tools it can serve. Pure.
 */
import type { WorkspaceSpec } from "../domain/workspace-spec.ts"
import type { Tool } from "./tool.ts"

/** Files, commands, outgoing calls. */
export type Capability = "fs" | "exec" | "net"

const capabilitiesOf = (spec: WorkspaceSpec): ReadonlySet<Capability> => {
  const all: ReadonlyArray<Capability> = spec.kind === "none" ? ["net"] : ["fs", "exec", "net"]
  return new Set(all.filter((one) => one !== "net" || spec.network !== false))
}

/** Tools whose effects do not say that they need files or commands. */
const byName: Readonly<Record<string, ReadonlyArray<Capability>>> = {
  read: ["fs"],
  write: ["fs"],
  edit: ["fs"],
  grep: ["fs"],
  find: ["fs"],
  ls: ["fs"],
  bash: ["exec"],
}

/** What a tool needs; one that states no effects needs everything. */
const needsOf = ({ effects, spec: { name } }: Pick<Tool, "effects" | "spec">): ReadonlySet<Capability> => {
  if (effects.length === 0) return new Set(["fs", "exec", "net"])
  const needs = new Set<Capability>(Object.hasOwn(byName, name) ? byName[name] : [])
  if (effects.includes("fs_write")) needs.add("fs")
  if (effects.includes("exec")) needs.add("exec")
  if (effects.includes("net_read") || effects.includes("net_write")) needs.add("net")
  return needs
}

/** Whether a workspace can serve a tool. */
export const serves = (spec: WorkspaceSpec, tool: Pick<Tool, "effects" | "spec">): boolean => {
  const has = capabilitiesOf(spec)
  return [...needsOf(tool)].every((need) => has.has(need))
}
