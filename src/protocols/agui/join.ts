/**
 * Where a stream begins, or begins again: what a snapshot says, and what the transport tells of the messages that it put in.
 */
import type { Entry } from "../../domain/entry.ts"
import type { Event, SessionState } from "../../domain/event.ts"
import type { TaskId } from "../../domain/ids.ts"
import { isAnswered, openCalls } from "./messages.ts"
import { ask, endSubagent, messages, startSubagent } from "./parts.ts"
import { rest } from "./settle.ts"
import { Speech } from "./speech.ts"
import { stateOf } from "./state.ts"
import { type Item, noTurn, type View } from "./view.ts"

type Snapshot = Extract<Event, { readonly type: "snapshot" }>

const isAtWork = ({ state }: SessionState): boolean => state !== "idle"

export const snapshot = (s: Speech, event: Snapshot): void => {
  const { session } = event
  const { options, session: before } = s.view
  s.begin(options.runId !== null || isAtWork(session))
  s.closeContent()
  for (const call of s.view.calls.keys()) s.dropCall(call)
  const { text = "", thinking = "" } = session.partial ?? {}
  const turn = session.turn_id === null ? noTurn : { id: session.turn_id, text, thinking, committed: false }
  const state = stateOf(session)
  s.patch({ session, state, turn, calls: new Map(), results: new Set(), placing: null })
  s.say({ type: "STATE_SNAPSHOT", snapshot: state })
  const known = before === null && options.runId !== null
  if (known && session.turn_id === null && (options.hasMessages === true || session.entries === 0)) {
    // The client has them; what it is about to add is in none of ours yet.
  } else s.messages({ entries: session.entries, entry: 0, turn: null })
  const running = (session.subagents ?? []).filter((one) => one.running)
  for (const id of s.view.subagents) {
    if (!running.some((one) => String(one.task_id) === id)) endSubagent(s, id, null)
  }
  for (const { role, task_id } of running) startSubagent(s, task_id, role, {})
  for (const question of session.questions) ask(s, question)
  if (options.runId === null) {
    if (!isAtWork(session)) s.finish(s.view.outcome ?? { type: "success", stopReason: null, entry: null })
    return
  }
  if (session.parked !== null) {
    const message = `the run is parked: ${session.parked.reason}; retry it or cancel it first`
    s.finish({ type: "error", code: "parked", message })
    return
  }
  if (before === null) return
  // What happened meanwhile was not seen: what is awaited and not queued is in its place, or over.
  s.patch({ awaits: new Map([...s.view.awaits.keys()].map((id) => [id, true])) })
  if (!isAtWork(session)) rest(s)
}

/**
 * Goes on behind a place where the conversation rested: the state of now, the messages up to `entry`, then every event since. Gives a view
 * for those events.
 */
export const rejoin = (view: View, event: Snapshot, entry: number): readonly [View, ReadonlyArray<Item>] => {
  const s = new Speech(view, { run: `run-${event.seq_no}`, time: event.timestamp_ms })
  const state = stateOf(event.session)
  s.patch({ session: event.session, state, lastEntry: entry, turn: { ...noTurn, committed: true } })
  s.say({ type: "STATE_SNAPSHOT", snapshot: state })
  messages(s)
  return s.done()
}

/** The messages that were due are said: `entries` are those within their cut, `current` the turn that goes on. */
export const seen = (view: View, entries: ReadonlyArray<Entry>, current: TaskId | null): View => {
  const lastEntry = entries.reduce((last, { id }) => Math.max(last, id), view.lastEntry)
  if (current === null || current !== view.turn.id || !isAnswered(entries, current)) return { ...view, lastEntry }
  const calls = new Map(view.calls)
  for (const id of openCalls(entries, current)) {
    if (!calls.has(id)) calls.set(id, { name: "", args: "{}", ended: true, committed: true })
  }
  return { ...view, lastEntry, calls, turn: { ...view.turn, committed: true } }
}
