/**
 * Plugin Questionnaire: the tool `ask_question`. It asks the person one or several things, each with options or in free text, and waits. The
 * question is durable: a call that a crash cut off asks again and is told what the question came to meanwhile. Where nobody can be asked, in
 * a subagent for example, the call fails at once. docs/questions.md.
 */
import { Effect, Either, Schema } from "effect"
import { defineTool, toolFailure } from "../../tools/define.ts"
import type { Tool } from "../../tools/tool.ts"
import { definePlugin } from "../define.ts"
import { choicesOf, Parameters, questionsAtMost, resultOf } from "./questionnaire/questions.ts"

const name = "ask_question"

const Options = Schema.Struct({
  /** How long a question stays open, in ms. Absent: the node's default, 120,000. */
  timeoutMs: Schema.optionalWith(Schema.Int.pipe(Schema.positive()), { exact: true }),
  /** Whether the model may allow texts beside options. Default true. */
  freeText: Schema.optionalWith(Schema.Boolean, { default: () => true }),
})

export const askQuestion = ({ freeText, timeoutMs }: typeof Options.Type): Tool =>
  defineTool({
    name,
    description: `Asks the person up to ${questionsAtMost} questions and waits for the answers. Use it for a decision that is theirs and that you
cannot find out; put all your questions into one call. Give options where the answers are known, the one you recommend first.`,
    parameters: Parameters,
    effects: ["read"],
    replay: "safe",
    execute: (args, { ask }) =>
      Effect.gen(function* () {
        const choices = yield* Either.mapLeft(choicesOf(args, freeText), (fault) => toolFailure(name, fault))
        if (ask === undefined)
          return resultOf(choices, { type: "nobody", reason: "this call is outside of a conversation" })
        const title = args.title ?? choices[0]?.text ?? ""
        const question = { title, questions: choices, ...(timeoutMs === undefined ? {} : { timeoutMs }) }
        return resultOf(choices, yield* ask(question))
      }),
  })

export const questionnaire = definePlugin({
  name: "questionnaire",
  aliases: ["Questionnaire", "ask-question"],
  description: "Asks the person questions with options, and waits for the answers",
  options: Options,
  tools: (options) => [askQuestion(options)],
})
