/**
 * What somebody types as an answer to a question. Pure.
 */
import { Either } from "effect"
import { nearest } from "../domain/nearest.ts"
import type { Choice, ChoiceAnswers, PermissionAnswer, QuestionAnswer, QuestionView } from "../domain/question.ts"

/** Letters and names beside the numbers of the options. */
const permissionWords: Readonly<Record<string, PermissionAnswer>> = {
  y: "allow_once",
  yes: "allow_once",
  a: "allow_always",
  always: "allow_always",
  n: "reject_once",
  no: "reject_once",
  r: "reject_once",
  never: "reject_always",
}

type Read<A> = Either.Either<A, string>

/** The option that a word names: its number, its id or its label. Null where it is none. */
const optionAt = <O extends { readonly id: string; readonly label: string }>(
  options: ReadonlyArray<O>,
  word: string,
): O | null => {
  if (/^\d{1,4}$/.test(word)) return options[Number(word) - 1] ?? null
  const folded = word.toLowerCase()
  return options.find((one) => one.id.toLowerCase() === folded || one.label.toLowerCase() === folded) ?? null
}

const numbers = (count: number): string => (count === 1 ? "1" : `a number from 1 to ${count}`)

const readPermission = (
  question: Extract<QuestionView, { readonly kind: "permission" }>,
  line: string,
): Read<PermissionAnswer> => {
  const word = line.trim()
  const known = optionAt(question.options, word)?.id ?? permissionWords[word.toLowerCase()]
  const answer = known as PermissionAnswer | undefined // The options of a permission are these four.
  return answer === undefined
    ? Either.left(`expected ${numbers(question.options.length)}, y or n, got "${word}"`)
    : Either.right(answer)
}

/** The answer to one of the things that a choice asks. */
export const readChoice = (choice: Choice, line: string): Read<ChoiceAnswers[string]> => {
  const { freeText, multiple, options } = choice
  const said = line.trim()
  if (said === "") return Either.left("expected an answer, got nothing")
  const words = multiple ? said.split(/[\s,]+/).filter((word) => word !== "") : [said]
  const chosen = [optionAt(options, said)].filter((one) => one !== null)
  const all = chosen.length > 0 ? chosen : words.map((word) => optionAt(options, word))
  if (options.length > 0 && all.every((one) => one !== null)) {
    return Either.right({ selected: [...new Set(all.flatMap((one) => (one === null ? [] : [one.id])))], text: null })
  }
  if (freeText || options.length === 0) return Either.right({ selected: [], text: said })
  const wrong = words[all.indexOf(null)] ?? said
  const like = nearest(wrong, [...options.map(({ label }) => label), ...options.map(({ id }) => id)])
  const expected = multiple ? `numbers from 1 to ${options.length}` : numbers(options.length)
  return Either.left(`expected ${expected}, got "${wrong}"${like === null ? "" : ` (nearest: ${like})`}`)
}

/** The answer of a person who has answered every part: one line for a permission, one for each thing that a choice asks. */
export const readAnswer = (question: QuestionView, lines: ReadonlyArray<string>): Read<QuestionAnswer> => {
  if (lines.length === 1 && lines[0] === "reject_once") return Either.right("reject_once")
  if (question.kind === "permission") return readPermission(question, lines.join(" "))
  const { questions } = question
  if (lines.length !== questions.length) {
    return Either.left(`expected ${questions.length} answers, one for each question, got ${lines.length}`)
  }
  return Either.gen(function* () {
    const answers: Record<string, ChoiceAnswers[string]> = {}
    for (const [at, choice] of questions.entries()) answers[choice.id] = yield* readChoice(choice, lines[at] ?? "")
    return answers
  })
}
