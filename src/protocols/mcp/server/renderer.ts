/**
 * What a client of the MCP server is told while a request of its works: progress, notices, and the result of a direct call. Pure; a view
 * belongs to one request.
 */
import type { Event } from "../../../domain/event.ts"
import type { Json } from "../../../domain/json.ts"
import { type TextPart, text, type UserPart } from "../../../domain/message.ts"
import type { Rendered, Renderer } from "../../renderer.ts"

export interface RenderOptions {
  /** The direct call that the request waits for; null: it waits for the end of a run. */
  readonly callId: string | null
}

/** What became of a call. */
export interface CallResult {
  readonly output: ReadonlyArray<UserPart>
  readonly structured: Json
  readonly isError: boolean
}

export type RenderedItem =
  | { readonly type: "progress"; readonly message: string }
  | { readonly type: "log"; readonly level: "info" | "warning" | "error"; readonly message: string }
  | { readonly type: "result"; readonly result: CallResult }

interface RenderView extends RenderOptions {
  /** When output was last told of, in ms since the epoch. */
  readonly toldAt: number
}

/** Output of tools is told of this often at most, in ms. */
const outputEveryMs = 100
/** Characters of one message. */
const messageChars = 200

const shortened = (line: string): string => (line.length > messageChars ? `${line.slice(0, messageChars - 1)}…` : line)

/** The last line of a piece of output that says something, or null. */
const lastLine = (delta: string): string | null => {
  const line = delta.trimEnd().split("\n").at(-1)?.trim() ?? ""
  return line === "" ? null : shortened(line)
}

const blockedOutput = (reason: string): ReadonlyArray<TextPart> => [text(reason)]

const render = (view: RenderView, event: Event): Rendered<RenderView, RenderedItem> => {
  const nothing: Rendered<RenderView, RenderedItem> = [view, []]
  const progress = (message: string): Rendered<RenderView, RenderedItem> => [view, [{ type: "progress", message }]]
  const isMine = (callId: string): boolean => view.callId === null || view.callId === callId
  switch (event.type) {
    case "turn_started":
      return view.callId === null ? progress("asks the model") : nothing
    case "tool_started":
      return isMine(event.call_id) ? progress(`${event.name} started`) : nothing
    case "tool_output": {
      const line = lastLine(event.delta)
      const due = event.timestamp_ms >= view.toldAt + outputEveryMs
      if (!isMine(event.call_id) || line === null || !due) return nothing
      return [{ callId: view.callId, toldAt: event.timestamp_ms }, [{ type: "progress", message: line }]]
    }
    case "tool_completed": {
      if (!isMine(event.call_id)) return nothing
      if (view.callId === null) return progress(`${event.name} ${event.is_error ? "failed" : "ended"}`)
      const { is_error: isError, output, structured_output: structured } = event
      return [view, [{ type: "result", result: { output, structured, isError } }]]
    }
    case "tool_blocked": {
      if (!isMine(event.call_id)) return nothing
      if (view.callId === null) return progress(shortened(`${event.name} was blocked: ${event.reason}`))
      const result = { output: blockedOutput(event.reason), structured: null, isError: true }
      return [view, [{ type: "result", result }]]
    }
    case "permission_request":
      return progress(shortened(`waits for a permission: ${event.title}`))
    case "ui_request":
      return progress(shortened(`waits for an answer: ${event.title}`))
    case "retry_scheduled":
      return progress(shortened(`tries again: ${event.reason}`))
    case "subagent_started":
      return progress(shortened(`subagent ${event.role}: ${event.task}`))
    case "compaction_started":
      return progress("makes the context short")
    case "notice":
      return [view, [{ type: "log", level: event.level, message: event.message }]]
    case "snapshot":
    case "submission_updated":
    case "turn_completed":
    case "turn_error":
    case "turn_cancelled":
    case "text_delta":
    case "thinking_delta":
    case "toolcall_delta":
    case "message_completed":
    case "stream_reset":
    case "state_changed":
    case "mode_changed":
    case "session_changed":
    case "usage_updated":
    case "compaction_completed":
    case "question_settled":
    case "plan_updated":
    case "subagent_finished":
      return nothing
  }
}

export const mcpRenderer: Renderer<RenderOptions, RenderView, RenderedItem> = {
  init: ({ callId }) => ({ callId, toldAt: 0 }),
  render,
  flush: (view) => [view, []],
}
