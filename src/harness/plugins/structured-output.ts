/**
 * Plugin StructuredOutput: the answer of a run as a value that fits a JSON Schema. The tool `structured_output` has the schema as its
 * parameters and ends the run without another request. A value that does not fit goes back to the model with what is wrong, `maxRepairs`
 * times a run; an answer in words is asked for once more in the same account. What was tried is counted in the transcript, so that it
 * outlives a crash. docs/structured-output.md.
 */
import { Effect, Schema } from "effect"
import { EntryKind } from "../../domain/entry.ts"
import type { ConversationId } from "../../domain/ids.ts"
import { isJsonObject, JsonObject } from "../../domain/json.ts"
import { text } from "../../domain/message.ts"
import { entriesOfRun, jsonAnswer, outputOutcome, refusals, toolName } from "../../domain/structured-output.ts"
import { Store } from "../../storage/store.ts"
import { toolFailure } from "../../tools/define.ts"
import type { Tool, ToolResult } from "../../tools/tool.ts"
import { definePlugin } from "../define.ts"
import { outputParameters } from "./structured-output/parameters.ts"
import { validator } from "./structured-output/validator.ts"

const StructuredOutputOptions = Schema.Struct({
  /** JSON Schema of the answers; without one there is no tool. `pi.agent.outputSchema` comes before it. */
  schema: Schema.optional(JsonObject),
  /** How often a run may try again after a value that does not fit. */
  maxRepairs: Schema.optionalWith(Schema.Int.pipe(Schema.between(0, 10)), { default: () => 1 }),
})

/** The run in progress, and how many of its tries came to nothing. */
const runOf = (conversation: ConversationId) =>
  Effect.gen(function* () {
    const store = yield* Store
    const entries = entriesOfRun(yield* store.contextEntries(conversation), EntryKind.continue)
    const asked = entries.filter((entry) => entry.kind === EntryKind.continue).length
    return { entries, failed: refusals(entries) + asked }
  })

const refused = (errors: ReadonlyArray<string>, last: boolean): ToolResult => ({
  output: [
    text(
      `The value does not fit the schema:\n${errors.join("\n")}\n${
        last
          ? "No further try is left: the run ends without structured output."
          : `Call ${toolName} again with the whole value, corrected.`
      }`,
    ),
  ],
  isError: true,
  details: { errors },
  ...(last ? { control: { terminate: true } } : {}),
})

/** The tool for a schema. Arguments are checked when the call runs, so that what is wrong counts as a try. */
export const structuredOutputTool = (schema: JsonObject, maxRepairs: number): Tool<Store> => {
  const { parameters, valueOf } = outputParameters(schema)
  return {
    spec: {
      name: toolName,
      description:
        "Gives the final answer, as a value that fits the schema of the parameters, and ends the work. Call it once, alone, when everything is known; do not repeat the answer in words.",
      parameters,
    },
    decode: (args) => Effect.succeed(args),
    effects: ["read"],
    replay: "safe",
    execution: "parallel",
    execute: (args, { conversation }) =>
      Effect.gen(function* () {
        const check = yield* Effect.mapError(validator(schema), (error) => toolFailure(toolName, error.message))
        const value = isJsonObject(args) ? valueOf(args) : undefined
        const errors = value === undefined ? ["value: expected a value, got nothing"] : check(value)
        if (errors.length === 0 && value !== undefined) {
          return {
            output: [text("The answer was taken.")],
            structuredOutput: value,
            details: { value },
            control: { terminate: true },
          }
        }
        const { failed } = yield* Effect.mapError(runOf(conversation), (error) => toolFailure(toolName, error.message))
        return refused(errors, failed >= maxRepairs)
      }),
  }
}

export const structuredOutput = definePlugin({
  name: "structured-output",
  aliases: ["StructuredOutput", "structured_output"],
  description: "Answers as values that fit a JSON Schema, by a tool that ends the run",
  options: StructuredOutputOptions,
  tools: ({ maxRepairs, schema }) => (schema === undefined ? [] : [structuredOutputTool(schema, maxRepairs)]),
  hooks: {
    // A subagent reports in words: the schema of its harness is for the answers to whoever asked at the top.
    beforeRequest: ({ tools }, { depth, options: { schema } }) =>
      Effect.succeed(
        depth === 0 || schema === undefined ? undefined : { tools: tools.filter((name) => name !== toolName) },
      ),
    onYield: (answer, { conversation, depth, options: { maxRepairs, schema } }) =>
      Effect.gen(function* () {
        if (schema === undefined || depth > 0) return undefined
        const { entries, failed } = yield* runOf(conversation)
        if (outputOutcome(entries).type === "value" || failed >= maxRepairs) return undefined
        const value = jsonAnswer(answer.text)
        const check = yield* validator(schema)
        if (value !== undefined && check(value).length === 0) return undefined
        return {
          continue: `The answer is wanted as a value, not in words: call ${toolName} with it.`,
        }
      }),
  },
})
