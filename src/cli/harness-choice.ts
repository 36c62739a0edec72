/**
 * Which harness a command line names. Whether there is one of that name is said by the node.
 */
import type { Invocation } from "./arguments.ts"
import { usageFailure } from "./exit.ts"
import * as option from "./options.ts"

/** The harness of conversations that the command line opens without a choice. */
export const defaultHarness = "super-pi-code"

/** What `--agent` used to mean. */
const agents: Readonly<Record<string, string>> = { self: "super-pi-code", research: "super-pi-planner" }

/** Said once per process. */
let warned = false

/** From `--harness`, or from `--agent`, which is about to go; undefined where neither is given. */
export const harnessOf = (invocation: Invocation): string | undefined => {
  const harness = invocation.get(option.harness)
  const agent = invocation.get(option.agent)
  if (agent === undefined) return harness
  if (harness !== undefined) throw usageFailure("--harness and --agent mean the same; give --harness")
  const meant = agents[agent] ?? agent
  if (!warned) process.stderr.write(`super-pi: warning: --agent is deprecated; give --harness ${meant}\n`)
  warned = true
  return meant
}
