/**
 * What a run said, read off the transcript: for a request that is repeated after its answer, and for whoever asks for a response later. Pure.
 */
import type { Settled } from "../../actors/contract.ts"
import { type Entry, EntryKind } from "../../domain/entry.ts"
import { isJsonObject } from "../../domain/json.ts"
import {
  type AssistantMessage,
  type StopReason,
  type ToolResultMessage,
  textOf,
  toolCallsOf,
} from "../../domain/message.ts"
import { toolName } from "../../domain/structured-output.ts"
import type { End, Said } from "./said.ts"
import { unansweredAs } from "./voice.ts"

/** Whether an entry is what somebody said to the conversation. */
export const isInput = ({ kind, model }: Pick<Entry, "kind" | "model">): boolean =>
  kind === EntryKind.user || (!kind.startsWith("pi.") && model.some((message) => message.role === "user"))

/** The entries of the run behind an input, up to the next input behind its answer: the results of a last call follow the answer. */
export const entriesOf = (
  transcript: ReadonlyArray<Entry>,
  { entry_id, placed_entry_id }: Pick<Settled, "entry_id" | "placed_entry_id">,
): ReadonlyArray<Entry> => {
  const from = transcript.findIndex((entry) => entry.id === placed_entry_id)
  if (from < 0) return []
  const behind = transcript.slice(from + 1)
  const next = behind.findIndex((entry) => isInput(entry) && (entry_id === null || entry.id > entry_id))
  return next < 0 ? behind : behind.slice(0, next)
}

const responseOf = (message: AssistantMessage): ReadonlyArray<Said> => {
  const thinking = message.content.map((part) => (part.type === "thinking" ? part.text : "")).join("")
  const words = textOf(message.content)
  return [
    ...(thinking === "" ? [] : [{ type: "thinking", delta: thinking } as const]),
    ...(words === "" ? [] : [{ type: "text", delta: words } as const]),
    { type: "responded" },
    ...toolCallsOf(message).map(
      ({ arguments: args, id, name }) => ({ type: "callStarted", id, name, arguments: args }) as const,
    ),
  ]
}

const resultOf = ({ callId, content, details, isError, toolName: name }: ToolResultMessage): Said => {
  const value = name === toolName && isJsonObject(details) ? details.value : undefined
  return {
    type: "callEnded",
    id: callId,
    name,
    isError,
    output: textOf(content),
    structured: value ?? null,
    durationMs: 0,
  }
}

/** What was said, without its end. */
export const saidIn = (entries: ReadonlyArray<Entry>): ReadonlyArray<Said> =>
  entries
    .flatMap((entry) => entry.model)
    .flatMap((message) => {
      if (message.role === "assistant") return responseOf(message)
      return message.role === "tool" ? [resultOf(message)] : []
    })

const stopReasonOf = (entries: ReadonlyArray<Entry>): StopReason =>
  entries.flatMap((entry) => entry.model).findLast((message) => message.role === "assistant")?.stopReason ?? "stop"

/** How it ended. `entries` are those of the run. */
export const endOf = (settled: Settled, entries: ReadonlyArray<Entry>): End => {
  const { usage } = settled
  if (settled.status !== "done") return { type: "failed", ...unansweredAs(settled), usage }
  return { type: "answered", stopReason: stopReasonOf(entries), text: settled.text ?? "", usage }
}
