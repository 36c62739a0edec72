/**
 * Plugin Handoff: the tool `handoff` stores a conversation that begins with a summary and a goal, for a person to go on with. It is no fork and
 * nothing runs in it; its rows are in the commit of the result.
 */
import { Effect, Schema } from "effect"
import { defineTool } from "../../tools/define.ts"
import { definePlugin } from "../define.ts"

const name = "handoff"

const Parameters = Schema.Struct({
  summary: Schema.NonEmptyString.annotations({
    description: "What the next conversation has to know: what was done and decided, paths, what is open",
  }),
  goal: Schema.NonEmptyString.annotations({ description: "What it is to reach" }),
  title: Schema.optional(
    Schema.NonEmptyString.annotations({ description: "Its title; default: the goal's first line" }),
  ),
})

export const handoffTool = defineTool({
  name,
  description:
    "Stores a new conversation that begins with your summary and goal, and gives its id. It does not run: a person goes on with it. Use it when the work should continue with a fresh context.",
  parameters: Parameters,
  effects: ["read", "state_write"],
  // Nothing happens before the commit of the result.
  replay: "safe",
  execute: ({ goal, summary, title = goal }) =>
    Effect.succeed({ output: [], control: { store: { title, summary, goal } } }),
})

export const handoff = definePlugin({
  name: "handoff",
  description: "handoff: a conversation that is stored with a summary and a goal, and not run",
  tools: () => [handoffTool],
})
