/**
 * `super-pi questions`: what conversations ask a person, and nobody has answered. Reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import { type ListedQuestion, openQuestions } from "../domain/question.ts"
import { duration } from "../protocols/terminal/format.ts"
import { choiceLines, questionLines } from "../protocols/terminal/question.ts"
import { painter, traitsOf } from "../protocols/terminal/style.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** The lines of one question: its number and time, then what it asks. Pure. */
export const listedLines = ({ conversation_id, question }: ListedQuestion, now: number): ReadonlyArray<string> => {
  const { expires_at } = question
  const left =
    expires_at === null ? "waits" : expires_at <= now ? "its time is over" : `${duration(expires_at - now)} left`
  const further = question.kind === "choice" ? question.questions.slice(1).flatMap(choiceLines) : []
  const said = [...questionLines(question), ...further].filter((line) => !line.startsWith("  ("))
  return [`${question.question_id}  conversation ${conversation_id}  ${left}`, ...said.map((line) => `  ${line}`)]
}

export const main = (invocation: Invocation): Promise<number> =>
  runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const open = store === null ? [] : openQuestions(yield* store.openTasks())
      if (invocation.get(option.json) === true) {
        process.stdout.write(`${JSON.stringify(open)}\n`)
        return ExitCode.ok
      }
      if (open.length === 0) {
        process.stdout.write("no question is open\n")
        return ExitCode.ok
      }
      const paint = painter(traitsOf(process.stdout, process.env).color)
      const lines = open.flatMap((one) => listedLines(one, Date.now()))
      for (const line of lines) process.stdout.write(`${line.startsWith(" ") ? line : paint("strong", line)}\n`)
      process.stderr.write("answer one: super-pi questions answer ID OPTION\n")
      return ExitCode.ok
    }),
  )
