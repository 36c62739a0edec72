/**
 * The tool `harness_task`: a prompt that a harness works on in a conversation of its own.
 */
import { Effect } from "effect"
import type { Failure } from "../../../domain/failure.ts"
import type { ConversationId } from "../../../domain/ids.ts"
import { text } from "../../../domain/message.ts"
import type { Connection } from "./connection.ts"
import { follow, type Say } from "./follow.ts"

export interface HarnessTask {
  readonly prompt: string
  /** Null: the connection's. */
  readonly harness: string | null
  /** What the client calls its request, or null. */
  readonly request: string | null
  readonly say: Say
  readonly cancels: () => boolean
}

export interface HarnessTaskEnd {
  readonly conversationId: ConversationId
  /** The id of the harness that worked on it; null: none. */
  readonly harness: string | null
  readonly text: string
  readonly isError: boolean
}

/** Characters of a title. */
const titleChars = 80

const titleOf = (prompt: string): string => {
  const line = prompt.trim().split("\n", 1)[0] ?? ""
  return line.length > titleChars ? `${line.slice(0, titleChars - 1)}…` : line
}

export const runHarnessTask = (connection: Connection, task: HarnessTask): Effect.Effect<HarnessTaskEnd, Failure> =>
  Effect.gen(function* () {
    const { cancels, prompt, request, say } = task
    const asked = task.harness ?? connection.harness
    const harness = asked === null ? null : (connection.served.aliases[asked] ?? asked)
    const requestId = request === null ? null : `mcp:${connection.key}:${request}`
    const agent = harness === null ? {} : { harness }
    const { conversation_id: conversationId, harness: resolved } = yield* connection.open(
      agent,
      titleOf(prompt),
      requestId,
    )
    const outcome = yield* follow(connection.served.service.sessions, {
      conversationId,
      principal: connection.principal,
      content: [text(prompt)],
      requestId,
      callId: null,
      say,
      cancels,
    })
    const end = outcome.type === "settled" ? outcome.settled : null
    const isError = end?.status !== "done"
    const why = end?.detail ?? end?.reason ?? "it ended without an answer"
    return {
      conversationId,
      harness: resolved,
      text: isError ? `The task was not completed: ${why}.` : (end.text ?? ""),
      isError,
    }
  })
