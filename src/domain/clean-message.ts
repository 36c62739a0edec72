/**
 * One message of a stored history as every service accepts it. What is fine comes back as the same reference; what cannot be sent
 * at all comes back as null.
 */
import { isRecord } from "./json.ts"
import type {
  AssistantMessage,
  AssistantPart,
  Message,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolResultMessage,
} from "./message.ts"
import {
  cleanArguments,
  cleanJson,
  cleanName,
  cleanSystem,
  cleanUserParts,
  itemsOf,
  type Note,
  sameItems,
  wellFormed,
} from "./well-formed.ts"

/** An assistant message and its calls beside the ids that their results know them by. */
export interface CleanAssistant {
  readonly message: AssistantMessage
  readonly calls: ReadonlyArray<{ readonly stored: string; readonly call: ToolCallPart }>
}

/** Responses that ended like this never reach a model again (context rule 9). */
const neverSent = new Set<unknown>(["aborted", "error", "deferred"])

/** A tool result, its call id well-formed. */
const cleanResult = (message: Readonly<Record<string, unknown>>, note: Note): ToolResultMessage | null => {
  if (typeof message.callId !== "string") {
    note("result without a call id dropped")
    return null
  }
  const callId = wellFormed(message.callId, note)
  const toolName = typeof message.toolName === "string" ? wellFormed(message.toolName, note) : ""
  const parts = cleanUserParts(message.content, note)
  const content = parts.length > 0 ? parts : [{ type: "text", text: "(no output)" } as const]
  if (parts.length === 0) note("empty result filled")
  const isError = message.isError === true
  const same =
    callId === message.callId &&
    toolName === message.toolName &&
    content === message.content &&
    isError === message.isError
  if (same) return message as unknown as ToolResultMessage // every field was just checked
  if (toolName !== message.toolName || isError !== message.isError) note("result made usable")
  return { role: "tool", callId, toolName, content, isError }
}

/** A system, user or tool message; null where nothing of it can be sent. */
export const cleanMessage = (message: unknown, toolName: RegExp, note: Note): Message | null => {
  if (!isRecord(message)) {
    note("no message, dropped")
    return null
  }
  switch (message.role) {
    case "system":
      return cleanSystem(message, toolName, note)
    case "tool":
      return cleanResult(message, note)
    case "user": {
      const content = cleanUserParts(message.content, note)
      if (content.length === 0) {
        note("empty user message dropped")
        return null
      }
      if (content === message.content) return message as unknown as Message // role and content were just checked
      return { role: "user", content }
    }
    default:
      note("unknown role, dropped")
      return null
  }
}

const metaOf = (meta: unknown, note: Note) => {
  if (meta === undefined) return undefined
  const cleaned = isRecord(meta) ? cleanJson(meta, note) : undefined
  if (cleaned === undefined) note("unusable metadata dropped")
  return isRecord(cleaned) ? (cleaned as NonNullable<TextPart["meta"]>) : undefined
}

const withMeta = <A extends object>(part: A, meta: TextPart["meta"]): A =>
  meta === undefined ? part : { ...part, meta }

const cleanText = (part: Readonly<Record<string, unknown>>, note: Note): TextPart | null => {
  const text = typeof part.text === "string" ? wellFormed(part.text, note) : ""
  if (text.trim() === "") {
    note("empty text part dropped")
    return null
  }
  const meta = metaOf(part.meta, note)
  if (text === part.text && meta === part.meta) return part as unknown as TextPart // every field was just checked
  return withMeta<TextPart>({ type: "text", text }, meta)
}

/** Thinking is signed: it stays as it is or goes. */
const cleanThinking = (part: Readonly<Record<string, unknown>>, note: Note): ThinkingPart | null => {
  const damaged: Array<string> = []
  const text = typeof part.text === "string" ? wellFormed(part.text, () => damaged.push("text")) : null
  const meta = metaOf(part.meta, () => damaged.push("meta"))
  const opaque = [part.signature, part.redacted]
  const readable = opaque.every((value) => value === undefined || typeof value === "string")
  for (const value of opaque) if (typeof value === "string") wellFormed(value, () => damaged.push("signature"))
  const signed = meta !== undefined || opaque.some((value) => typeof value === "string" && value !== "")
  if (text === null || damaged.length > 0 || !readable || (text.trim() === "" && !signed)) {
    note("unusable thinking dropped")
    return null
  }
  return part as unknown as ThinkingPart // every field was just checked
}

const cleanCall = (
  part: Readonly<Record<string, unknown>>,
  toolName: RegExp,
  ids: Set<string>,
  note: Note,
): { readonly stored: string; readonly call: ToolCallPart } => {
  const stored = typeof part.id === "string" ? wellFormed(part.id, note) : ""
  let id = stored.trim() === "" ? "call" : stored
  for (let n = 2; ids.has(id) || id.trim() === ""; n++) id = `${stored.trim() === "" ? "call" : stored}_${n}`
  ids.add(id)
  if (id !== part.id) note("call id made unique")
  const name = cleanName(part.name, toolName, note)
  const args = cleanArguments(part.arguments, note)
  const meta = metaOf(part.meta, note)
  const same = id === part.id && name === part.name && args === part.arguments && meta === part.meta
  if (same) return { stored, call: part as unknown as ToolCallPart } // every field was just checked
  return { stored, call: withMeta<ToolCallPart>({ type: "toolCall", id, name, arguments: args }, meta) }
}

/**
 * An assistant message with something to send: text or calls. Thinking at its end has nothing that it led to and goes, since services
 * refuse it there. Ids of its calls are made unique among `ids` and added to them.
 */
export const cleanAssistant = (
  message: Readonly<Record<string, unknown>>,
  toolName: RegExp,
  ids: Set<string>,
  note: Note,
): CleanAssistant | null => {
  if (neverSent.has(message.stopReason)) {
    note(`answer that ended as ${String(message.stopReason)} left out`)
    return null
  }
  const content: Array<AssistantPart> = []
  const calls: Array<CleanAssistant["calls"][number]> = []
  for (const part of typeof message.content === "string"
    ? [{ type: "text", text: message.content }]
    : itemsOf(message.content)) {
    const type = isRecord(part) ? part.type : undefined
    if (!isRecord(part)) note("unknown part dropped")
    else if (type === "toolCall") {
      const cleaned = cleanCall(part, toolName, ids, note)
      calls.push(cleaned)
      content.push(cleaned.call)
    } else if (type === "text" || type === "thinking") {
      const cleaned = type === "text" ? cleanText(part, note) : cleanThinking(part, note)
      if (cleaned !== null) content.push(cleaned)
    } else note("unknown part dropped")
  }
  while (content.at(-1)?.type === "thinking") {
    content.pop()
    note("thinking that led to nothing dropped")
  }
  if (content.length === 0) {
    note("empty answer dropped")
    return null
  }
  const model = typeof message.model === "string" ? message.model : ""
  const kept = sameItems(content, message.content)
  // Every field of an unchanged message was just checked.
  if (kept && model === message.model) return { message: message as unknown as AssistantMessage, calls }
  if (!kept && typeof message.content === "string") note("content made a list of parts")
  if (model !== message.model) note("answer of an unknown model")
  const stopReason = calls.length > 0 ? "tool_calls" : "stop"
  return { message: { role: "assistant", content, model, stopReason }, calls }
}
