/**
 * What a call's code gets: its keys, its workspace, and where its output goes; and what becomes of its failure.
 */
import { Deferred, Effect } from "effect"
import type { Failure } from "../../domain/failure.ts"
import type { ConversationId, TaskId } from "../../domain/ids.ts"
import { text } from "../../domain/message.ts"
import type { AskOutcome } from "../../domain/question.ts"
import { effectKeyOf } from "../../tools/effect-key.ts"
import type { ToolContext, ToolFailure, ToolQuestion, ToolResult, Workspace } from "../../tools/tool.ts"
import type { Send } from "./jobs.ts"
import type { CallSlot } from "./machine/data.ts"

/** Where the calls of one conversation act. */
export interface Place {
  readonly conversation: ConversationId
  readonly workspace: Workspace
}

export const callContext = (
  { call, effect, task }: CallSlot,
  { conversation, workspace }: Place,
  emit: (chunk: string) => Effect.Effect<void>,
  send: Send,
): ToolContext => ({
  callId: call.id,
  conversation,
  idempotencyKey: effect,
  effectKey: (name) => effectKeyOf(effect, name),
  workspace,
  emit,
  ask: (question) => askIn(task.id, question, send),
})

/** Asks through the machine. What storage refuses to keep is asked of nobody. */
const askIn = (owner: TaskId, question: ToolQuestion, send: Send): Effect.Effect<AskOutcome> =>
  Effect.flatMap(Deferred.make<AskOutcome>(), (told) => {
    const reply = {
      succeed: (outcome: AskOutcome) => Deferred.unsafeDone(told, Effect.succeed(outcome)),
      fail: ({ message }: Failure) => Deferred.unsafeDone(told, Effect.succeed({ type: "nobody", reason: message })),
    }
    const { key = "question", questions, timeoutMs = null, title } = question
    const body = { kind: "choice" as const, title, questions }
    return Effect.zipRight(send({ type: "ask", owner, key, body, timeoutMs, reply }), Deferred.await(told))
  })

/** The error result of a failure that the tool declares. */
export const failedResult = ({ details, inDoubt, message }: ToolFailure): ToolResult => ({
  output: [text(message)],
  isError: true,
  ...(details === undefined ? {} : { details }),
  ...(inDoubt === undefined ? {} : { inDoubt }),
})
