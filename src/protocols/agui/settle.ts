/**
 * When the run of a client ends: with the ends of the inputs that it waits for, with the conversation's rest, or with questions that all
 * else waits for.
 */
import type { Event, SessionState } from "../../domain/event.ts"
import type { SubmissionId, TaskId } from "../../domain/ids.ts"
import { interruptOf } from "./question.ts"
import { Speech } from "./speech.ts"
import type { Item, View } from "./view.ts"

type EventOf<Type extends Event["type"]> = Extract<Event, { readonly type: Type }>

const success = { type: "success", stopReason: null, entry: null } as const

/** The conversation rests: a run that followed it ends. */
export const rest = (s: Speech): void => {
  const { awaits, ending, options, outcome, session } = s.view
  if (options.runId === null || awaits.size === 0) {
    s.finish(ending ?? outcome ?? success)
    return
  }
  if ([...awaits.values()].includes(false)) return
  const queued = [...awaits.keys()].filter((id) => session?.queued.includes(id) === true)
  if (queued.length === 0) s.finish(ending ?? outcome ?? success)
  else if (outcome?.type === "error") {
    const message = `an earlier run failed, and this message waits behind it: ${outcome.message}`
    s.finish({ type: "error", code: "held_up", message })
  }
}

export const submissionUpdated = (s: Speech, event: EventOf<"submission_updated">): void => {
  const { detail, reason, status, submission_id: id } = event
  if (status === "placed") {
    s.begin(true)
    s.patch({ placing: id })
  }
  if (!s.view.awaits.has(id)) return
  const awaits = new Map(s.view.awaits)
  if (status === "queued" || status === "placed") awaits.set(id, true)
  else awaits.delete(id)
  s.patch({ awaits })
  const { outcome } = s.view
  if (status === "unanswered") {
    const stopped = reason === "aborted" || reason === "withdrawn" || reason === "reset"
    const fault = { type: "error" as const, code: reason ?? "unanswered", message: detail ?? "it was not answered" }
    s.patch({ ending: stopped ? { type: "cancelled" } : outcome?.type === "error" ? outcome : fault })
  } else if (status === "done" && awaits.size === 0 && s.view.ending === null) {
    s.patch({ ending: outcome?.type === "success" ? outcome : success })
  }
}

const later = (view: View): Speech => new Speech(view, { run: "run-0", time: null })

/**
 * What the run waits for. Inputs that are `known` were there before it; of one that is `done` the client has not seen the answer, so it
 * gets the messages.
 */
export const awaiting = (
  view: View,
  inputs: ReadonlyArray<{ readonly id: SubmissionId; readonly known: boolean; readonly done: boolean }>,
): readonly [View, ReadonlyArray<Item>] => {
  const awaits = new Map(inputs.filter(({ done }) => !done).map(({ id, known }) => [id, known]))
  const s = later({ ...view, awaits, own: new Set(inputs.map(({ id }) => id)) })
  if (inputs.some(({ done }) => done) && view.session?.turn_id === null) {
    s.messages({ entries: view.session.entries, entry: 0, turn: null })
  }
  if (awaits.size === 0 && view.session?.state === "idle" && view.answering.size === 0) rest(s)
  return s.done()
}

/** The request of this run answers these questions: they are not asked again. */
export const answering = (view: View, questions: ReadonlyArray<TaskId>): View => ({
  ...view,
  answering: new Set(questions),
})

/** Whether nothing goes on but that questions wait for their answers: of calls, or, where no turn is going, of what a queued input wants run. */
const isBlocked = ({ questions, state, tools, turn_id }: SessionState): boolean =>
  (state === "executing_tools" || turn_id === null) &&
  questions.length > 0 &&
  tools.every((tool) => questions.some((question) => question.call_id === tool.call_id))

/** No event waits to be rendered: a run whose end is known ends, and so does one that waits for nothing but answers. */
export const pause = (view: View): readonly [View, ReadonlyArray<Item>] => {
  const { answering: given, awaits, ending, options, outcome, over, run, session } = view
  if (options.runId === null || over || run === null || session === null) return [view, []]
  const s = later(view)
  const end = awaits.size === 0 ? (ending ?? outcome) : null
  if (end !== null) {
    s.finish(end)
    return s.done()
  }
  const open = session.questions.filter((one) => !given.has(one.question_id))
  if (options.interrupts === true && open.length === session.questions.length && isBlocked(session)) {
    s.finish({ type: "interrupt", interrupts: open.map(interruptOf) })
  }
  return s.done()
}

/** Ends the run with an error, or does so with one that is opened for it. */
export const fail = (view: View, code: string, message: string): readonly [View, ReadonlyArray<Item>] => {
  if (view.over) return [view, []]
  const s = later(view)
  s.begin(true)
  s.finish({ type: "error", code, message })
  return s.done()
}
