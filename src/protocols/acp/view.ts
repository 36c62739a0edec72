/**
 * What the renderer of the Agent Client Protocol knows of a session, and the steps that events and entries of a transcript share: text that
 * runs on, calls that begin and end. Pure.
 */
import type { ContentBlock, SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk"
import type { TodoItem } from "../../domain/document.ts"
import type { TaskId } from "../../domain/ids.ts"
import type { JsonObject } from "../../domain/json.ts"
import { type AssistantPart, textOf, type UserPart } from "../../domain/message.ts"
import type { QuestionView } from "../../domain/question.ts"
import type { Rendered } from "../renderer.ts"
import type { Catalog, Choices } from "./choices.ts"
import { blockOf } from "./content.ts"
import type { Ask } from "./question.ts"
import { type Directory, diffsOf, editorPath, kindOf, locationsOf, textContent, titleOf } from "./tool-call.ts"
import type { Extras } from "./updates.ts"

export interface Options {
  readonly catalog: Catalog
  readonly directory: Directory
  /** What the editor can show beyond the base of the protocol. */
  readonly extras: Extras
}

/** What the transport sends. */
export type Item =
  | { readonly type: "update"; readonly update: SessionUpdate }
  | { readonly type: "ask"; readonly question: QuestionView; readonly ask: Ask }
  | { readonly type: "withdraw"; readonly questionId: TaskId }

/** A call that has not ended. */
export interface Call {
  readonly name: string
  readonly args: JsonObject
  readonly started: boolean
  /** The end of its output so far. */
  readonly output: string
}

export interface View {
  readonly options: Options
  /** Null before the first snapshot. */
  readonly choices: Choices | null
  /** What was streamed of the message that is not complete yet. */
  readonly said: { readonly text: string; readonly thinking: string }
  /** Number of the message that is being streamed, for its id. */
  readonly message: number
  readonly calls: ReadonlyMap<string, Call>
  readonly asked: ReadonlySet<TaskId>
  /** The todo list as it was said last. */
  readonly plan: ReadonlyArray<TodoItem>
  /** The newest event. */
  readonly seqNo: number
}

export const init = (options: Options): View => ({
  options,
  choices: null,
  said: { text: "", thinking: "" },
  message: 0,
  calls: new Map(),
  asked: new Set(),
  plan: [],
  seqNo: 0,
})

export type Said = Rendered<View, Item>

export const update = (one: SessionUpdate): Item => ({ type: "update", update: one })

export const nothing: ReadonlyArray<Item> = []

export const chunk = (
  kind: "agent_message_chunk" | "agent_thought_chunk" | "user_message_chunk",
  content: ContentBlock,
  messageId: string,
): Item => update({ sessionUpdate: kind, content, messageId })

/** More of the message with this id. */
export const streamed = (view: View, id: string, kind: "text" | "thinking", text: string): Said => {
  if (text === "") return [view, nothing]
  const said = { ...view.said, [kind]: view.said[kind] + text }
  const name = kind === "text" ? "agent_message_chunk" : "agent_thought_chunk"
  return [{ ...view, said }, [chunk(name, { type: "text", text }, id)]]
}

export const withCall = (view: View, id: string, call: Call): View => ({
  ...view,
  calls: new Map(view.calls).set(id, call),
})

const withoutCall = (view: View, id: string): View => {
  const calls = new Map(view.calls)
  calls.delete(id)
  return { ...view, calls }
}

/** A call that begins to run, announced or brought up to date. */
export const started = (view: View, id: string, name: string, args: JsonObject, output = ""): Said => {
  const { directory } = view.options
  const known = view.calls.get(id)
  const content: Array<ToolCallContent> = [
    ...diffsOf(name, args, directory),
    ...(output === "" ? [] : [textContent(output)]),
  ]
  const shown = {
    toolCallId: id,
    title: titleOf(name, args),
    kind: kindOf(name),
    status: "in_progress" as const,
    rawInput: args,
    locations: locationsOf(name, args, directory),
    ...(content.length === 0 ? {} : { content }),
  }
  const next = withCall(view, id, { name, args, started: true, output })
  return [
    next,
    [
      update(
        known === undefined
          ? { sessionUpdate: "tool_call", ...shown }
          : { sessionUpdate: "tool_call_update", ...shown },
      ),
    ],
  ]
}

/** A call that has ended. */
export const ended = (
  view: View,
  id: string,
  name: string,
  end: {
    readonly failed: boolean
    readonly content: ReadonlyArray<ToolCallContent>
    readonly raw?: unknown
    readonly line?: number | null
  },
): Said => {
  const { directory } = view.options
  const known = view.calls.get(id)
  const args = known?.args ?? {}
  const line = end.line ?? null
  const { path } = args
  const at = line !== null && typeof path === "string" ? [{ path: editorPath(path, directory), line }] : null
  const shown = {
    toolCallId: id,
    status: end.failed ? ("failed" as const) : ("completed" as const),
    content: [...(end.failed ? [] : diffsOf(name, args, directory)), ...end.content],
    ...(end.raw === undefined || end.raw === null ? {} : { rawOutput: end.raw }),
    ...(at === null ? {} : { locations: at }),
  }
  const item = update(
    known === undefined
      ? { sessionUpdate: "tool_call", title: titleOf(name, args), kind: kindOf(name), ...shown }
      : { sessionUpdate: "tool_call_update", ...shown },
  )
  return [withoutCall(view, id), [item]]
}

/** One step after the other. */
export const both = (first: Said, next: (view: View) => Said): Said => {
  const [view, items] = next(first[0])
  return [view, items.length === 0 ? first[1] : [...first[1], ...items]]
}

export const each = <A>(view: View, all: Iterable<A>, step: (view: View, one: A) => Said): Said => {
  let said: Said = [view, nothing]
  for (const one of all) said = both(said, (now) => step(now, one))
  return said
}

/** The rest of a message of which a part was streamed; all of it where that was another one. */
export const rest = (said: string, whole: string): string => (whole.startsWith(said) ? whole.slice(said.length) : whole)

/** What of a complete message was not streamed. */
export const completed = (view: View, id: string, content: ReadonlyArray<AssistantPart | UserPart>): Said => {
  const thinking = content.map((part) => (part.type === "thinking" ? part.text : "")).join("")
  const said = both(streamed(view, id, "thinking", rest(view.said.thinking, thinking)), (now) =>
    streamed(now, id, "text", rest(now.said.text, textOf(content))),
  )
  return both(said, (now) => [{ ...now, said: { text: "", thinking: "" }, message: now.message + 1 }, nothing])
}

/** A message of a person. */
export const userSaid = (view: View, id: string, content: ReadonlyArray<AssistantPart | UserPart>): Said => [
  view,
  content
    .filter((part): part is UserPart => part.type === "text" || part.type === "image")
    .map((part) => chunk("user_message_chunk", blockOf(part), id)),
]
