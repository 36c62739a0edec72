/**
 * Plugin PromptCustomizer: rules of work for the tools that are offered, in one section of the prompt. A tool that is not offered costs no
 * line of it, so the base prompt stays short. The section changes only when the tools do.
 */
import { Effect, Schema } from "effect"
import { definePlugin } from "../define.ts"
import { rulesText } from "./prompt-customizer/rules.ts"

/** Name of the section. */
export const rulesSection = "tool_rules"

const PromptCustomizerOptions = Schema.Struct({
  /** By the name of a rule or tool: a text to have instead, or null for none. */
  rules: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.NullOr(Schema.String) }), {
    default: () => ({}),
  }),
  /** Rules that hold whatever is offered. */
  add: Schema.optionalWith(Schema.Array(Schema.String), { default: () => [] }),
})

export const promptCustomizer = definePlugin({
  name: "prompt-customizer",
  aliases: ["PromptCustomizer", "prompt_customizer"],
  description: "Rules of work for the tools that are offered, and for no others",
  options: PromptCustomizerOptions,
  hooks: {
    beforeRequest: ({ tools }, { options }) =>
      Effect.succeed({ sections: { [rulesSection]: rulesText(tools, options.rules, options.add) } }),
  },
})
