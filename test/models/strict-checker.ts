/**
 * A slow and obvious check of a history, written against what the services document and without a line of the code under test. It
 * returns what is wrong, nothing for a valid history.
 */
import type { Message } from "../../src/domain/message.ts"

export interface Demands {
  readonly alternate: boolean
  readonly userFirst: boolean
  readonly userLast: boolean
}

const strings = (value: unknown): ReadonlyArray<string> => {
  if (typeof value === "string") return [value]
  if (Array.isArray(value)) return value.flatMap(strings)
  if (typeof value === "object" && value !== null) return Object.entries(value).flatMap(([k, v]) => [k, ...strings(v)])
  return []
}

const hasLoneSurrogate = (text: string) => {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit >= 0xdc00 && unit <= 0xdfff) return true
    if (unit < 0xd800 || unit > 0xdbff) continue
    const next = text.charCodeAt(i + 1)
    if (!(next >= 0xdc00 && next <= 0xdfff)) return true
    i++
  }
  return false
}

const toolName = /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/

/** Faults of one history, for example `2: two results for call a`. */
export const faults = (messages: ReadonlyArray<Message>, demands: Demands): ReadonlyArray<string> => {
  const found: Array<string> = []
  const ids = new Set<string>()
  let waiting: Array<string> = []

  const check = (message: Message, at: number): void => {
    const fault = (what: string) => found.push(`${at}: ${what}`)
    if (!["system", "user", "assistant", "tool"].includes(message.role)) {
      fault("unknown role")
      return
    }
    for (const text of strings(message)) if (hasLoneSurrogate(text)) fault("lone surrogate")
    if (JSON.stringify(JSON.parse(JSON.stringify(message))) !== JSON.stringify(message)) fault("not JSON")

    if (message.role !== "tool" && waiting.length > 0) fault(`calls without results: ${waiting.join()}`)
    if (message.role !== "tool") waiting = []
    if (message.role === "system") {
      for (const tool of message.addTools) if (!toolName.test(tool.name)) fault("name of an offered tool")
      return
    }

    if (message.content.length === 0) fault("empty message")
    for (const part of message.content) {
      if (part.type === "text" && part.text.trim() === "") fault("empty text")
      if (part.type === "image" && (part.data === "" || !part.mediaType.startsWith("image/"))) fault("unusable image")
    }
    if (message.role === "assistant") {
      if (["aborted", "error", "deferred"].includes(message.stopReason)) fault("failed answer")
      if (message.content.at(-1)?.type === "thinking") fault("ends with thinking")
      for (const part of message.content) {
        if (part.type !== "toolCall") continue
        if (ids.has(part.id)) fault(`call id ${part.id} twice`)
        if (part.id.trim() === "") fault("blank call id")
        if (!toolName.test(part.name)) fault("tool name")
        if (typeof part.arguments !== "object" || part.arguments === null || Array.isArray(part.arguments)) {
          fault("arguments are no object")
        }
        ids.add(part.id)
        waiting.push(part.id)
      }
    }
    if (message.role === "tool") {
      if (waiting[0] !== message.callId) fault(`result of ${message.callId} where ${waiting[0]} is due`)
      waiting = waiting.slice(1)
    }
  }
  messages.forEach(check)
  if (waiting.length > 0) found.push(`end: calls without results: ${waiting.join()}`)

  const spoken = messages.filter(({ role }) => role !== "system")
  if (demands.userFirst && spoken[0] !== undefined && spoken[0].role !== "user") found.push("first is no user message")
  if (demands.userLast && !["user", "tool"].includes(spoken.at(-1)?.role ?? "")) found.push("last is an answer")
  if (demands.alternate) {
    spoken.forEach((message, i) => {
      if (message.role === "assistant" && spoken[i - 1]?.role === "assistant") found.push("two answers in a row")
    })
    messages.forEach((message, i) => {
      if (message.role === "user" && messages[i - 1]?.role === "user") found.push("two user messages in a row")
    })
  }
  return found
}
