/**
 * The transcript as messages of AG-UI, and the ids by which live events and snapshots call the same message. Pure.
 *
 * - `turn-5` is the answer of turn 5, `turn-5-thinking` what the model thought; of several entries of one turn (a process died in between) the
 *   last one is it, and the others also name their entry;
 * - `result-<call>` is the result of a call; `entry-12` any other message.
 */
import { type Entry, EntryKind } from "../../domain/entry.ts"
import type { EntryId, TaskId } from "../../domain/ids.ts"
import { type AssistantMessage, type Message, textOf, toolCallsOf, type UserPart } from "../../domain/message.ts"
import type { AguiMessage, ContentPart } from "./protocol.ts"

export const answerId = (turn: TaskId | null): string => `turn-${turn ?? 0}`
export const thinkingId = (turn: TaskId | null): string => `${answerId(turn)}-thinking`
export const resultId = (call: string): string => `result-${call}`
export const entryId = (entry: EntryId): string => `entry-${entry}`

/** Whether a message's id was made here. */
export const isOurs = (id: string): boolean => /^(turn-\d+(-.*)?|entry-\d+(\.\d+)?|result-.+)$/s.test(id)

/** Which part of a transcript a snapshot of messages shows: what was committed when it is due. */
export interface Cut {
  /** So many entries, the oldest first; null where it is told by the other two. */
  readonly entries: number | null
  /** Entries up to this one … */
  readonly entry: number
  /** … and those that tasks before this turn wrote. */
  readonly turn: TaskId | null
}

export const within = (entries: ReadonlyArray<Entry>, cut: Cut): ReadonlyArray<Entry> =>
  cut.entries === null
    ? entries.filter(({ id, task }) => id <= cut.entry || (cut.turn !== null && task !== null && task < cut.turn))
    : entries.slice(0, cut.entries)

const imagesAndText = (content: ReadonlyArray<UserPart>): string | Array<ContentPart> =>
  content.every((part) => part.type === "text")
    ? content.map((part) => part.text).join("\n")
    : content.map(
        (part): ContentPart =>
          part.type === "text"
            ? { type: "text", text: part.text }
            : { type: "image", source: { type: "data", value: part.data, mimeType: part.mediaType } },
      )

/** Marks the first part of an input that holds what a front end said of itself (`RunAgentInput.context`). */
const contextHead = "Context that the application gives:\n"

/** What is submitted in front of a message for the context of a front end. */
export const contextText = (context: ReadonlyArray<{ readonly description: string; readonly value: string }>): string =>
  `${contextHead}${context.map(({ description, value }) => `- ${description}: ${value}`).join("\n")}`

/** What a person said, without the context of the front end. */
export const shownOf = (content: ReadonlyArray<UserPart>): ReadonlyArray<UserPart> => {
  const [first, ...rest] = content
  return first?.type === "text" && first.text.startsWith(contextHead) && rest.length > 0 ? rest : content
}

/** The content of a tool's result or of an input. */
export const contentOf = imagesAndText

/** The last assistant entry of each turn. */
const lastOfTurns = (entries: ReadonlyArray<Entry>): ReadonlyMap<TaskId, EntryId> => {
  const last = new Map<TaskId, EntryId>()
  for (const { id, kind, task } of entries) if (kind === EntryKind.assistant && task !== null) last.set(task, id)
  return last
}

/** An answer that was cut off, of the turn that goes on: what stands of it is no longer the turn's answer. */
const isLeftOver = (message: AssistantMessage, task: TaskId | null, current: TaskId | null): boolean =>
  task === current && (message.stopReason === "aborted" || message.stopReason === "error")

/** Whether the turn's answer is among the entries. */
export const isAnswered = (entries: ReadonlyArray<Entry>, turn: TaskId): boolean =>
  entries.some(({ kind, model, task }) => {
    if (kind !== EntryKind.assistant || task !== turn) return false
    return model.some((message) => message.role === "assistant" && !isLeftOver(message, task, turn))
  })

const thinkingOf = (message: AssistantMessage): string =>
  message.content.reduce((all, part) => (part.type === "thinking" ? all + part.text : all), "")

const assistantMessages = (message: AssistantMessage, id: string): ReadonlyArray<AguiMessage> => {
  const thinking = thinkingOf(message)
  const said = textOf(message.content)
  const calls = toolCallsOf(message)
  const out: Array<AguiMessage> = []
  if (thinking !== "") out.push({ id: `${id}-thinking`, role: "reasoning", content: thinking })
  if (said === "" && calls.length === 0) return out
  out.push({
    id,
    role: "assistant",
    ...(said === "" ? {} : { content: said }),
    ...(calls.length === 0
      ? {}
      : {
          toolCalls: calls.map((call) => ({
            id: call.id,
            type: "function" as const,
            function: { name: call.name, arguments: JSON.stringify(call.arguments) },
          })),
        }),
  })
  return out
}

/**
 * Entries as messages, oldest first. `current` is the turn that goes on, or null. `names` are the ids that a client gave to entries that came
 * from it.
 */
export const messagesOf = (
  entries: ReadonlyArray<Entry>,
  current: TaskId | null,
  names: ReadonlyMap<EntryId, string> = new Map(),
): ReadonlyArray<AguiMessage> => {
  const last = lastOfTurns(entries)
  const one = (entry: Entry, message: Message, at: number): ReadonlyArray<AguiMessage> => {
    const own = at === 0 ? (names.get(entry.id) ?? entryId(entry.id)) : `${entryId(entry.id)}.${at}`
    switch (message.role) {
      case "system":
        return []
      case "user": {
        if (entry.kind === EntryKind.compaction) {
          const content = { text: textOf(message.content) }
          return [{ id: own, role: "activity", activityType: "compaction", content }]
        }
        return [{ id: own, role: "user", content: imagesAndText(shownOf(message.content)) }]
      }
      case "assistant": {
        const { task } = entry
        if (entry.kind !== EntryKind.assistant || task === null) return assistantMessages(message, own)
        const isAnswer = last.get(task) === entry.id && !isLeftOver(message, task, current)
        return assistantMessages(message, isAnswer ? answerId(task) : `${answerId(task)}-${own}`)
      }
      case "tool": {
        const content = imagesAndText(message.content)
        const result = { id: resultId(message.callId), role: "tool" as const, toolCallId: message.callId, content }
        return [message.isError ? { error: textOf(message.content), ...result } : result]
      }
    }
  }
  return entries.flatMap((entry) => entry.model.flatMap((message, at) => one(entry, message, at)))
}

/** Calls of the turn's answer that have no result yet. */
export const openCalls = (entries: ReadonlyArray<Entry>, turn: TaskId | null): ReadonlyArray<string> => {
  const results = new Set<string>()
  const calls: Array<string> = []
  for (const { model, task } of entries) {
    for (const message of model) {
      if (message.role === "tool") results.add(message.callId)
      if (message.role === "assistant" && task === turn) calls.push(...toolCallsOf(message).map((call) => call.id))
    }
  }
  return calls.filter((call) => !results.has(call))
}
