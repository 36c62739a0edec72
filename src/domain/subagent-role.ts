/**
 * The roles of subagents. All but `worker` only read, whatever their parent may do.
 */
import { Schema } from "effect"

export const SubagentRole = Schema.Literal("scout", "planner", "reviewer", "researcher", "worker")
export type SubagentRole = typeof SubagentRole.Type
