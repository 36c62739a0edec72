/**
 * Plugin Subagent: the tool `delegate_subagent` hands tasks to child conversations and answers at once; the conversation waits for them
 * without being blocked, and reads a summary of each. The conversation machine starts, stops and recovers them (docs/subagents.md).
 */
import { Effect, Schema } from "effect"
import { isReadOnly, SubagentPolicy } from "../../domain/subagent.ts"
import { SubagentRole } from "../../domain/subagent-role.ts"
import { defineTool } from "../../tools/define.ts"
import { definePlugin } from "../define.ts"

/** Children of one delegation. */
const maxTasks = 16

const hour = 60 * 60 * 1000

export const SubagentOptions = Schema.Struct({
  /** How deep subagents may be below a person's conversation: at 1 a subagent has none of its own. */
  maxDepth: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 10)), { default: () => 1 }),
  /** Milliseconds that a subagent may take, from the start of its job, where the call says nothing. */
  timeoutMs: Schema.optionalWith(Schema.Int.pipe(Schema.between(1, 24 * hour)), { default: () => 120_000 }),
})
export type SubagentOptions = typeof SubagentOptions.Type

export const delegateToolName = "delegate_subagent"

const Parameters = Schema.Struct({
  tasks: Schema.Array(
    Schema.Struct({
      role: SubagentRole.annotations({
        description: "scout, planner, reviewer and researcher only read; a worker may do what you may",
      }),
      task: Schema.NonEmptyString.annotations({
        description: "What is to be done, complete: the subagent sees nothing of this conversation",
      }),
      context: Schema.optional(
        Schema.String.annotations({ description: "What it has to know beside the task: paths, findings, constraints" }),
      ),
    }),
  ).pipe(Schema.minItems(1), Schema.maxItems(maxTasks)),
  wait_policy: Schema.optional(
    SubagentPolicy.annotations({
      description: "all (default): go on when every one has ended; fail_fast: the first failure stops the others",
    }),
  ),
  timeout_ms: Schema.optional(
    Schema.Int.pipe(Schema.between(1, 24 * hour)).annotations({
      description: "Milliseconds that each may take from its start",
    }),
  ),
})

/** The tool for these options. */
export const delegateTool = ({ maxDepth, timeoutMs }: SubagentOptions) =>
  defineTool({
    name: delegateToolName,
    description:
      "Hands tasks to subagents that work at the same time, each in a conversation of its own. Answers at once; you go on when they have ended, and read one message from each. One delegation at a time: put everything that can be done at the same time into one call.",
    parameters: Parameters,
    // A worker may change things, as far as the mode lets it; that mode is never looser than this conversation's.
    effects: ["read"],
    effectsOf: ({ tasks }) => (tasks.every(({ role }) => isReadOnly(role)) ? ["read"] : ["read", "state_write"]),
    // Nothing happens before the commit of the result.
    replay: "safe",
    execute: ({ tasks, timeout_ms = timeoutMs, wait_policy = "all" }) =>
      Effect.succeed({
        output: [],
        control: {
          await: {
            orders: tasks.map(({ context = null, role, task }) => ({ role, task, context })),
            policy: wait_policy,
            timeoutMs: timeout_ms,
            maxDepth,
          },
        },
      }),
  })

export const subagent = definePlugin({
  name: "subagent",
  aliases: ["subagents"],
  description: "delegate_subagent: child conversations that work at the same time, read-only or as workers",
  options: SubagentOptions,
  tools: (options) => [delegateTool(options)],
  hooks: {
    // Where the depth is used up the tool is not offered, and refused if called.
    beforeRequest: ({ tools }, { depth, options }) =>
      Effect.succeed(
        depth >= options.maxDepth && tools.includes(delegateToolName)
          ? { tools: tools.filter((name) => name !== delegateToolName) }
          : undefined,
      ),
    beforeTool: ({ name }, { depth, options }) =>
      Effect.succeed(
        name === delegateToolName && depth >= options.maxDepth
          ? {
              type: "block" as const,
              rule: "maxDepth",
              reason: `subagents may be ${options.maxDepth} deep, and this conversation is at depth ${depth}; do the task yourself`,
            }
          : undefined,
      ),
  },
})
