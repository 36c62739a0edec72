/**
 * What a model asks, made into a question, and a person's answers made into a result. Pure.
 */
import { Either, Schema } from "effect"
import type { Json } from "../../../domain/json.ts"
import { text } from "../../../domain/message.ts"
import type { AskOutcome, Choice, ChoiceAnswers } from "../../../domain/question.ts"
import type { ToolResult } from "../../../tools/tool.ts"

/** Questions of one call, and options of one question, at most. */
export const questionsAtMost = 8
const optionsAtMost = 20

const line = (most: number) => Schema.NonEmptyString.pipe(Schema.maxLength(most))

const Option = Schema.Struct({
  label: line(200),
  description: Schema.optional(line(500)),
})

export const Parameters = Schema.Struct({
  title: Schema.optional(line(200).annotations({ description: "what it is about, in a few words" })),
  questions: Schema.Array(
    Schema.Struct({
      id: Schema.optional(line(60).annotations({ description: "name of the answer; default: q1, q2 …" })),
      question: line(1_000),
      options: Schema.optionalWith(Schema.Array(Option).pipe(Schema.maxItems(optionsAtMost)), { default: () => [] }),
      multiple: Schema.optionalWith(Schema.Boolean, { default: () => false }).annotations({
        description: "whether several options may be chosen",
      }),
      allow_text: Schema.optionalWith(Schema.Boolean, { default: () => false }).annotations({
        description: "whether the person may answer with a text instead; without options that is so",
      }),
    }),
  ).pipe(Schema.minItems(1), Schema.maxItems(questionsAtMost)),
})
export type Parameters = typeof Parameters.Type

const twice = (names: ReadonlyArray<string>): string | null =>
  names.find((name, at) => names.indexOf(name) !== at) ?? null

/** The question to a person, or what is wrong with what the model asks. `freeText` false: texts are answers only where there are no options. */
export const choicesOf = (
  { questions }: Parameters,
  freeText: boolean,
): Either.Either<ReadonlyArray<Choice>, string> => {
  const choices = questions.map(
    ({ allow_text, id, multiple, options, question }, at): Choice => ({
      id: id ?? `q${at + 1}`,
      text: question,
      options: options.map(({ description, label }) => ({
        id: label,
        label,
        ...(description === undefined ? {} : { description }),
      })),
      multiple,
      freeText: options.length === 0 || (allow_text && freeText),
    }),
  )
  const id = twice(choices.map((choice) => choice.id))
  if (id !== null) return Either.left(`questions: expected ids that differ, got "${id}" twice`)
  for (const [at, { options }] of choices.entries()) {
    const label = twice(options.map((option) => option.label))
    if (label !== null) {
      return Either.left(`questions[${at}].options: expected labels that differ, got "${label}" twice`)
    }
  }
  return Either.right(choices)
}

const said = ({ selected, text: own }: ChoiceAnswers[string]): string =>
  [...selected, ...(own === null ? [] : [own])].join(", ")

const failed = (message: string, result: string): ToolResult => ({
  output: [text(message)],
  isError: true,
  details: { question: { result } },
})

/** The result for the model, for programs (`structuredOutput.answers`), and for interfaces. */
export const resultOf = (choices: ReadonlyArray<Choice>, outcome: AskOutcome): ToolResult => {
  switch (outcome.type) {
    case "answered": {
      const { answers, by } = outcome
      const lines = choices.map((choice) => {
        const answer = answers[choice.id]
        return `${choice.text} → ${answer === undefined ? "(no answer)" : said(answer)}`
      })
      return {
        output: [text(lines.join("\n"))],
        // Answers are plain data.
        structuredOutput: { answers: answers as Json },
        details: { question: { result: "answered", by } },
      }
    }
    case "denied":
      return failed(
        `The person (${outcome.by}) declined to answer. Go on with what you know, or say what you need.`,
        "denied",
      )
    case "expired":
      return failed("Nobody answered in time. Go on with what you know, or say what you need.", "expired")
    case "withdrawn":
      return failed(`The question was withdrawn (${outcome.reason}).`, "withdrawn")
    case "nobody":
      return failed(`Nobody could be asked: ${outcome.reason}. Decide yourself, and say what you decided.`, "nobody")
    case "allowed":
      return failed("The question was answered with a permission, which answers nothing.", "answered")
  }
}
