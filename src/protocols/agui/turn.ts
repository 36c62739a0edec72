/**
 * Turns and their messages.
 */
import type { Event } from "../../domain/event.ts"
import { textOf, type UserPart } from "../../domain/message.ts"
import { entryId, shownOf } from "./messages.ts"
import { messages, newest, ofTurn } from "./parts.ts"
import type { Speech } from "./speech.ts"
import { noTurn } from "./view.ts"

type EventOf<Type extends Event["type"]> = Extract<Event, { readonly type: Type }>

export const turnStarted = (s: Speech, event: EventOf<"turn_started">): void => {
  const { awaits, ending, options, outcome } = s.view
  const end = options.runId === null || awaits.size === 0 ? (ending ?? outcome) : null
  if (end !== null) s.finish(end)
  if (s.view.over) return
  s.begin(true)
  s.closeContent()
  // A call that was refused before it began has a result that no event tells of.
  const untold = s.view.calls.size > 0
  for (const call of s.view.calls.keys()) s.dropCall(call)
  s.patch({ turn: { ...noTurn, id: event.turn_id }, results: new Set(), outcome: null })
  if (untold) messages(s)
}

export const userMessage = (s: Speech, event: EventOf<"message_completed">): void => {
  const { own, placing } = s.view
  s.patch({ placing: null })
  newest(s, event.entry_id)
  if (placing !== null && own.has(placing)) return
  s.begin(true)
  s.closeContent()
  const messageId = entryId(event.entry_id)
  const said = textOf(shownOf(event.content as ReadonlyArray<UserPart>))
  s.say({ type: "TEXT_MESSAGE_START", messageId, role: "user" })
  if (said !== "") s.say({ type: "TEXT_MESSAGE_CONTENT", messageId, delta: said })
  s.say({ type: "TEXT_MESSAGE_END", messageId })
}

export const assistantMessage = (s: Speech, event: EventOf<"message_completed">): void => {
  ofTurn(s, event.turn_id)
  const said = textOf(event.content)
  const thought = event.content.reduce((all, part) => (part.type === "thinking" ? all + part.text : all), "")
  if (s.view.turn.thinking === "") s.thinking(thought)
  const differs = s.view.turn.text !== "" && s.view.turn.text !== said
  if (s.view.turn.text === "") s.text(said)
  s.closeContent()
  const calls = event.content.flatMap((part) => (part.type === "toolCall" ? [part] : []))
  for (const id of s.view.calls.keys()) if (!calls.some((call) => call.id === id)) s.dropCall(id)
  for (const call of calls) s.wholeCall(call.id, call.name, call.arguments)
  const committed = new Map([...s.view.calls].map(([id, call]) => [id, { ...call, committed: true }]))
  s.patch({ turn: { ...s.view.turn, committed: true }, calls: committed })
  newest(s, event.entry_id)
  if (differs) messages(s)
}

export const streamReset = (s: Speech): void => {
  const { calls, turn } = s.view
  s.closeContent()
  for (const call of calls.keys()) s.dropCall(call)
  s.patch({ turn: { ...noTurn, id: turn.id } })
  // Nothing but whole messages takes back what was said.
  messages(s)
}
