/**
 * The floor of one durable turn with one tool call: exactly the rows that the engine stores for it, written by the raw writer in four
 * transactions, with nothing in between.
 *
 *   1. the submission, the user entry, the generation task, the conversation's time
 *   2. the assistant entry with its call, the tool task, the generation waiting, the usage document
 *   3. the tool result, the tool task ended, the generation ended, the next one running
 *   4. the answer, the generation ended, the submission done, the usage document
 */
import type { ConversationId, DocumentId, EntryId, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { type AssistantPart, text } from "../../src/domain/message.ts"
import { conversation, document, entry, submission, task } from "../../src/storage/conformance/records.ts"
import type { Synchronous } from "../../src/storage/sqlite/connection.ts"
import { openRaw } from "./raw.ts"

/** What is said in a turn. */
export interface TurnTexts {
  readonly prompt: (turn: number) => string
  readonly toolName: string
  readonly toolArguments: JsonObject
  readonly toolOutput: string
  readonly answer: string
}

export interface TurnFloor {
  /** Creates a conversation; one transaction. */
  readonly begin: (conversation: number) => void
  /** Writes the four transactions of the next turn of a conversation. */
  readonly turn: (conversation: number, turn: number) => void
  readonly close: () => void
}

/** Small integers stand for ids, as the raw writer has no mint. */
const as = <Id>(value: number): Id => value as unknown as Id

const usage = { input: 900, output: 120, cacheRead: 800, cacheWrite: 0, reasoning: 0 }

/** Opens a fresh raw database at `path` for turns. */
export const openTurnFloor = (path: string, synchronous: Synchronous, texts: TurnTexts): TurnFloor => {
  const raw = openRaw(path, synchronous)
  let entries = 0
  let tasks = 0
  let submissions = 0

  const assistant = (content: ReadonlyArray<AssistantPart>, stopReason: "tool_calls" | "stop") => ({
    kind: "pi.assistant",
    model: [{ role: "assistant" as const, model: "mock/echo", stopReason, usage, content }],
  })

  const turn = (of: number, number: number): void => {
    const here = as<ConversationId>(of)
    const [user, call, result, answer] = [1, 2, 3, 4].map((step) => as<EntryId>(entries + step)) as [
      EntryId,
      EntryId,
      EntryId,
      EntryId,
    ]
    entries += 4
    const generation = as<TaskId>(++tasks)
    const tool = as<TaskId>(++tasks)
    const next = as<TaskId>(++tasks)
    const request = as<SubmissionId>(++submissions)
    const counted = document(as<DocumentId>(of), here, {
      ...{ kind: "pi.usage", value: { models: { "mock/echo": usage } } },
    })
    const callId = `call_${number}`
    const content = [{ type: "text" as const, text: texts.prompt(number) }]
    const running = { status: "running", input: { submission: request, run: number }, node: "floor" } as const
    const toolInput = { callId, name: texts.toolName, arguments: texts.toolArguments, replay: "safe" }
    const placed = {
      status: "placed",
      requestId: `request-${number}-${of}`,
      content: { content },
      entry: user,
    } as const

    raw.write({
      submissions: [submission(request, here, placed)],
      entries: [entry(user, here, { model: [{ role: "user", content }] })],
      tasks: [task(generation, here, { ...running, checkpoint: { phase: "request" } })],
      conversationUpdates: [{ id: here, updatedAt: 1_750_000_000_000 + number }],
    })
    raw.write({
      documents: [counted],
      entries: [
        entry(call, here, {
          ...assistant(
            [{ type: "toolCall", id: callId, name: texts.toolName, arguments: texts.toolArguments }],
            "tool_calls",
          ),
          task: generation,
        }),
      ],
      tasks: [
        task(tool, here, { kind: "pi.tool", status: "running", input: toolInput, owner: generation, node: "floor" }),
        task(generation, here, { ...running, status: "waiting", checkpoint: { phase: "tools", tasks: [tool] } }),
      ],
    })
    raw.write({
      entries: [
        entry(result, here, {
          kind: "pi.tool-result",
          model: [
            {
              role: "tool",
              callId,
              toolName: texts.toolName,
              content: [text(texts.toolOutput)],
              isError: false,
            },
          ],
          task: tool,
        }),
      ],
      tasks: [
        task(tool, here, {
          kind: "pi.tool",
          status: "terminal",
          input: toolInput,
          owner: generation,
          outcome: { status: "completed", result: { entry: result } },
        }),
        task(generation, here, { ...running, status: "terminal", outcome: { status: "completed", result: null } }),
        task(next, here, { ...running, checkpoint: { phase: "request" } }),
      ],
    })
    raw.write({
      entries: [entry(answer, here, { ...assistant([text(texts.answer)], "stop"), task: generation })],
      tasks: [
        task(next, here, {
          ...running,
          status: "terminal",
          outcome: { status: "completed", result: { entry: answer } },
        }),
      ],
      submissions: [submission(request, here, { ...placed, status: "done", answer })],
      documents: [counted],
    })
  }

  return {
    begin: (of) => raw.write({ conversations: [conversation(as<ConversationId>(of))] }),
    turn,
    close: raw.close,
  }
}
