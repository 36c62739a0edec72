/**
 * `super-pi effects settle ID ANSWER`: records what became of an effect in doubt. This writes, so it goes through the owner of the database.
 */
import { EffectAnswer } from "../domain/effect.ts"
import { TaskId } from "../domain/ids.ts"
import type { Invocation } from "./arguments.ts"
import { runChange } from "./change.ts"
import { usageFailure } from "./exit.ts"

const taskOf = (word: string): TaskId => {
  const id = /^\d{1,16}$/.test(word) ? Number(word) : 0
  if (id < 1 || !Number.isSafeInteger(id)) {
    throw usageFailure(`ID: expected the number of a call, got "${word}"; see: super-pi effects`)
  }
  return TaskId.make(id)
}

const answerOf = (word: string): EffectAnswer => {
  const answer = EffectAnswer.literals.find((one) => one === word)
  if (answer === undefined) {
    throw usageFailure(`ANSWER: expected one of ${EffectAnswer.literals.join(", ")}, got "${word}"`)
  }
  return answer
}

export const main = async (invocation: Invocation): Promise<number> => {
  const [id = "", said = ""] = invocation.words
  const taskId = taskOf(id)
  const answer = answerOf(said)
  return runChange(
    invocation,
    (sessions) => sessions.settleEffect({ taskId, answer }),
    ({ conversation_id }) => `call ${taskId} of conversation ${conversation_id} is settled: ${answer}`,
  )
}
