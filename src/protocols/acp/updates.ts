/**
 * The smaller payloads of `session/update`: plans, usage, notices, compactions. Pure. Each gives none where the editor has no place for it.
 */
import type { SessionUpdate } from "@agentclientprotocol/sdk"
import type { TodoItem } from "../../domain/document.ts"
import type { Event } from "../../domain/event.ts"
import type { Usage } from "../../domain/usage.ts"
import type { Catalog, Choices } from "./choices.ts"

/** What an editor said that it can show. */
export interface Extras {
  readonly notices: boolean
  readonly compaction: boolean
  readonly forms: boolean
}

const planStatus = { pending: "pending", in_progress: "in_progress", done: "completed" } as const

export const plan = (items: ReadonlyArray<TodoItem>): SessionUpdate => ({
  sessionUpdate: "plan",
  entries: items.map(({ status, text }) => ({ content: text, priority: "medium", status: planStatus[status] })),
})

/** Tokens in the context after a response; none where the size of the model's window is not known. */
export const usageUpdate = (usage: Usage, choices: Choices | null, { models }: Catalog): Array<SessionUpdate> => {
  const size = models.find(({ id }) => id === choices?.model)?.contextWindow ?? null
  return size === null ? [] : [{ sessionUpdate: "usage_update", used: usage.input + usage.output, size }]
}

/** A line for the person; `info` is for editors that have a place for notices. */
export const notice = (
  severity: "info" | "warning" | "error",
  message: string,
  { notices }: Extras,
): Array<SessionUpdate> => (notices && message !== "" ? [{ sessionUpdate: "notice", severity, title: message }] : [])

/** Why a turn failed. An editor without notices gets it as text: the protocol has no other place for it. */
export const failure = (message: string, reference: string | null, extras: Extras): Array<SessionUpdate> => {
  const words = reference === null || reference === "" ? message : `${message} (reference ${reference})`
  if (extras.notices) return notice("error", words, extras)
  return [{ sessionUpdate: "agent_message_chunk", content: { type: "text", text: `\n\n[Error: ${words}]` } }]
}

type Compaction = Extract<Event, { readonly type: "compaction_started" | "compaction_completed" }>

const compactionStatus = {
  completed: "completed",
  failed: "failed",
  cancelled: "cancelled",
  stale: "cancelled",
  nothing: "cancelled",
  declined: "cancelled",
} as const

export const compactionUpdate = (event: Compaction, { compaction }: Extras): Array<SessionUpdate> => {
  if (!compaction) return []
  const compactionId = String(event.task_id)
  if (event.type === "compaction_started") {
    return [{ sessionUpdate: "compaction_update", compactionId, status: "in_progress" }]
  }
  return [
    {
      sessionUpdate: "compaction_update",
      compactionId,
      status: compactionStatus[event.status],
      ...(event.error === null ? {} : { error: event.error }),
    },
  ]
}
