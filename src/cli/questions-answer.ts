/**
 * `super-pi questions answer ID OPTION…`: answers an open question. This writes, so it goes through the owner of the database.
 */
import { Effect, Either, Stream } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Failure } from "../domain/failure.ts"
import { type ConversationId, TaskId } from "../domain/ids.ts"
import { mayBeAlive, readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { ExitCode, usageFailure } from "./exit.ts"
import { openSessions } from "./node.ts"
import * as option from "./options.ts"
import { readAnswer } from "./question-answer.ts"
import { runCommand } from "./runtime.ts"

const idOf = (word: string): TaskId => {
  const id = /^\d{1,16}$/.test(word) ? Number(word) : 0
  if (id < 1 || !Number.isSafeInteger(id)) {
    throw usageFailure(`ID: expected the number of a question, got "${word}"; see: super-pi questions`)
  }
  return TaskId.make(id)
}

/** Whether some other process runs the node. */
const isOwned = (database: string): boolean => {
  const owner = readOwner(canonicalPathOf(database))
  return owner !== null && mayBeAlive(owner)
}

/** Waits until the conversation rests: where this process runs the node, leaving at once would cut off what was just allowed. */
const rest = (sessions: SessionsService, conversationId: ConversationId): Effect.Effect<void, Failure> =>
  sessions.watch({ conversationId, after: null }).pipe(
    Stream.takeUntil(
      (event) =>
        (event.type === "snapshot" && event.session.state === "idle") ||
        (event.type === "state_changed" && event.to === "idle"),
    ),
    Stream.runDrain,
  )

export const main = async (invocation: Invocation): Promise<number> => {
  const [id = "", ...words] = invocation.words
  const questionId = idOf(id)
  const options = nodeOptionsOf(invocation)
  const owned = options.postgres === undefined && isOwned(options.db)
  return runCommand(() =>
    Effect.gen(function* () {
      const sessions = yield* openSessions(options)
      const open = yield* sessions.questions({ conversationId: null })
      const found = open.find((one) => one.question.question_id === questionId)
      // One that is not open any more is answered all the same: the refusal says what became of it.
      const read = found === undefined ? Either.right("reject_once" as const) : readAnswer(found.question, words)
      if (Either.isLeft(read)) return yield* Effect.fail(usageFailure(`OPTION: ${read.left}`))
      const client = "super-pi questions"
      const answered = yield* sessions.answer({
        questionId,
        answer: read.right,
        requestId: crypto.randomUUID(),
        client,
      })
      const said = typeof answered.answer === "string" ? answered.answer : JSON.stringify(answered.answer)
      const line =
        invocation.get(option.json) === true
          ? JSON.stringify(answered)
          : `question ${questionId} of conversation ${answered.conversation_id} is answered: ${said}`
      process.stdout.write(`${line}\n`)
      if (!owned) {
        process.stderr.write("no other process has the database open: the run goes on here until it rests\n")
        yield* rest(sessions, answered.conversation_id)
      }
      return ExitCode.ok
    }),
  )
}
