/**
 * What must hold of a database at rest, whatever was killed on the way. Pure: from the rows and the traces of unsafe calls to faults, one line
 * each. Numbered; the stress run and the crash test report by number.
 */
import { deriveContext } from "../src/domain/context.ts"
import { type Entry, EntryKind } from "../src/domain/entry.ts"
import { type Message, textOf, toolCallsOf } from "../src/domain/message.ts"
import type { Effects, World } from "./database.ts"

const groupBy = <A>(list: ReadonlyArray<A>, key: (value: A) => number): ReadonlyMap<number, ReadonlyArray<A>> => {
  const groups = new Map<number, Array<A>>()
  for (const value of list) {
    const group = groups.get(key(value))
    if (group === undefined) groups.set(key(value), [value])
    else group.push(value)
  }
  return groups
}

/** I1: SQLite finds the file sound. */
const sound = ({ damage }: World): ReadonlyArray<string> => damage.map((line) => `I1 integrity: ${line}`)

/** I2: within a conversation, later entries carry later or equal commit numbers, and none is above the counter. */
const monotonic = ({ entries, seq }: World): ReadonlyArray<string> => {
  const last = new Map<number, number>()
  return entries.flatMap((entry) => {
    const before = last.get(entry.conversation) ?? 0
    last.set(entry.conversation, entry.seq)
    return [
      ...(entry.seq < before ? [`I2 entry ${entry.id}: seq ${entry.seq} after ${before}`] : []),
      ...(entry.seq > seq ? [`I2 entry ${entry.id}: seq ${entry.seq} above the counter ${seq}`] : []),
    ]
  })
}

/** I3: at rest no task is open, and no submission waits; a parked task says so. */
const atRest = ({ tasks, submissions }: World): ReadonlyArray<string> => [
  ...tasks
    .filter((task) => task.status !== "terminal")
    .map(
      (task) =>
        `I3 task ${task.id} (${task.kind}) is ${task.status}${task.parked === null ? "" : `, parked: ${task.parked}`}`,
    ),
  ...submissions
    .filter(({ status }) => status === "queued" || status === "placed")
    .map(({ id, status }) => `I3 submission ${id} is ${status}`),
]

/** I4: a terminal task has an outcome; an unanswered submission has a reason, a done one an answer of its conversation. */
const honest = ({ tasks, submissions, entries }: World): ReadonlyArray<string> => {
  const byId = new Map<number, Entry>(entries.map((entry) => [entry.id, entry]))
  return [
    ...tasks
      .filter((task) => task.status === "terminal" && task.outcome === null)
      .map(({ id }) => `I4 task ${id}: no outcome`),
    ...submissions.flatMap(({ id, status, reason, answer, conversation }) => {
      if (status === "unanswered") return reason === null ? [`I4 submission ${id}: unanswered without a reason`] : []
      if (status !== "done") return []
      const entry = answer === null ? undefined : byId.get(answer)
      return entry?.conversation === conversation
        ? []
        : [`I4 submission ${id}: done, but its answer ${answer} is not there`]
    }),
  ]
}

/** I5: every placed input stands in the transcript once, as it was sent, and every user entry belongs to an input. */
const placedOnce = ({ submissions, entries }: World): ReadonlyArray<string> => {
  const byId = new Map<number, Entry>(entries.map((entry) => [entry.id, entry]))
  const taken = new Map<number, number>()
  const faults: Array<string> = []
  for (const { id, entry, content, kind } of submissions) {
    if (entry === null || kind !== "input") continue
    if (taken.has(entry)) faults.push(`I5 entry ${entry} holds submissions ${taken.get(entry)} and ${id}`)
    taken.set(entry, id)
    const message = byId.get(entry)?.model[0]
    const sent = (content as { readonly content: unknown }).content
    if (message?.role !== "user" || JSON.stringify(message.content) !== JSON.stringify(sent)) {
      faults.push(`I5 submission ${id}: entry ${entry} does not hold what was sent`)
    }
  }
  for (const { id, kind } of entries) {
    if (kind === EntryKind.user && !taken.has(id)) faults.push(`I5 entry ${id}: a user entry that nobody sent`)
  }
  return faults
}

interface Call {
  readonly conversation: number
  readonly id: string
  readonly arguments: string
  /** Whether it is an error, for each result entry. */
  readonly results: Array<boolean>
}

/** Answers that no model sees again; their calls never ran, and their ids may come back. */
const unsent: ReadonlySet<string> = new Set(["aborted", "error", "deferred"])

/** Every call of an answer with its results: a result belongs to the newest call of its id. */
const callsOf = (
  entries: ReadonlyArray<Entry>,
): { readonly calls: ReadonlyArray<Call>; readonly stray: ReadonlyArray<string> } => {
  const newest = new Map<string, Call>()
  const calls: Array<Call> = []
  const stray: Array<string> = []
  for (const { conversation, model } of entries) {
    for (const message of model) {
      if (message.role === "tool") {
        const call = newest.get(`${conversation}/${message.callId}`)
        if (call === undefined) stray.push(`${message.callId} of ${conversation}`)
        else call.results.push(message.isError)
      }
      if (message.role !== "assistant" || unsent.has(message.stopReason)) continue
      for (const { id, arguments: args } of toolCallsOf(message)) {
        const call = { conversation, id, arguments: JSON.stringify(args), results: [] }
        newest.set(`${conversation}/${id}`, call)
        calls.push(call)
      }
    }
  }
  return { calls, stray }
}

/** I6: every call of an answer has exactly one result entry. */
const resultPerCall = ({ entries }: World): ReadonlyArray<string> => {
  const { calls, stray } = callsOf(entries)
  return [
    ...calls
      .filter(({ results }) => results.length !== 1)
      .map(({ id, conversation, results }) => `I6 call ${id} of ${conversation}: ${results.length} results`),
    ...stray.map((result) => `I6 result ${result} has no call`),
  ]
}

/** I7: the context of every conversation is valid for every provider, as `faultsOf` judges it. */
const contextsValid = (
  { entries }: World,
  faultsOf: (messages: ReadonlyArray<Message>) => ReadonlyArray<string>,
): ReadonlyArray<string> =>
  [...groupBy(entries, (entry) => entry.conversation)].flatMap(([conversation, own]) =>
    faultsOf(deriveContext(own)).map((fault) => `I7 context of ${conversation}: ${fault}`),
  )

/**
 * I8: no unsafe call ran twice; none ran whose intent is not in the transcript; one that is reported as successful ran to its end. A token
 * is found in the arguments of its call.
 */
const unsafeOnce = ({ entries }: World, effects: Effects): ReadonlyArray<string> => {
  const faults: Array<string> = []
  const callOf = new Map<string, Call>()
  for (const call of callsOf(entries).calls) {
    const token = /start ([\w.]+)/.exec(call.arguments)?.[1]
    if (token !== undefined) callOf.set(token, call)
  }
  for (const [token, { starts, ends }] of effects) {
    if (starts > 1) faults.push(`I8 unsafe call ${token} ran ${starts} times`)
    if (ends > starts) faults.push(`I8 unsafe call ${token} ended more often than it began`)
    if (!callOf.has(token)) faults.push(`I8 unsafe call ${token} ran, but its intent was not committed`)
  }
  for (const [token, { results }] of callOf) {
    const { starts, ends } = effects.get(token) ?? { starts: 0, ends: 0 }
    if (results[0] === false && (starts !== 1 || ends !== 1)) {
      faults.push(`I8 unsafe call ${token} is reported as done, but it began ${starts} and ended ${ends} times`)
    }
  }
  return faults
}

/** The final text of the answer to the user entry that stands last before it, by entry id: what answers are compared with. */
export const answersOf = (
  entries: ReadonlyArray<Entry>,
): ReadonlyMap<number, { readonly asked: string; readonly text: string }> => {
  const asked = new Map<number, string>()
  const answers = new Map<number, { readonly asked: string; readonly text: string }>()
  for (const { id, conversation, model } of entries) {
    for (const message of model) {
      if (message.role === "user") asked.set(conversation, textOf(message.content))
      if (message.role === "assistant" && message.stopReason === "stop") {
        answers.set(id, { asked: asked.get(conversation) ?? "", text: textOf(message.content) })
      }
    }
  }
  return answers
}

/** Every fault of a database at rest. */
export const faultsAtRest = (
  world: World,
  effects: Effects,
  contextFaults: (messages: ReadonlyArray<Message>) => ReadonlyArray<string>,
): ReadonlyArray<string> => [
  ...sound(world),
  ...monotonic(world),
  ...atRest(world),
  ...honest(world),
  ...placedOnce(world),
  ...resultPerCall(world),
  ...contextsValid(world, contextFaults),
  ...unsafeOnce(world, effects),
]
