/**
 * Who owns a database, as one process sees it: a pure state machine. Its rules, by number, are in docs/attach.md.
 *
 * electing → owning (E2) | attached (E3) | failed (E5, E6); attached → electing (E4); failed → electing (E7). `owning` is final.
 */
import type { AttachFailure } from "./attachment.ts"

/** The process that holds the database, as the lease names it. */
export interface Holder {
  readonly pid: number
  readonly host: string
  /** Milliseconds since the epoch. */
  readonly since: number
  readonly program: string
  readonly socket: string
}

/** Why there is no owner to ask. */
export type Reason<E> =
  /** The lease or our own node failed. */
  | { readonly type: "own"; readonly error: E }
  /** The holder does not answer, or may not be asked. */
  | { readonly type: "holder"; readonly holder: Holder; readonly failure: AttachFailure }

/** `since` is when the present holder was first met without an answer: the patience of rule E5 counts from there. */
export type Election<E> =
  | { readonly name: "electing"; readonly holder: Holder | null; readonly since: number; readonly attempts: number }
  | { readonly name: "owning" }
  | { readonly name: "attached"; readonly holder: Holder }
  | { readonly name: "failed"; readonly reason: Reason<E> }

export type ElectionEvent<E> =
  | { readonly type: "claimed" }
  | { readonly type: "held"; readonly holder: Holder; readonly at: number }
  | { readonly type: "attached" }
  | { readonly type: "notAttached"; readonly failure: AttachFailure; readonly at: number }
  | { readonly type: "ownFailed"; readonly error: E }
  | { readonly type: "gone"; readonly at: number }
  | { readonly type: "asked"; readonly at: number }

/** What the shell does next. */
export type Command =
  | { readonly type: "claim"; readonly afterMs: number }
  | { readonly type: "attach"; readonly holder: Holder }
  /** Nothing: wait for the next event. */
  | { readonly type: "rest" }

/** How long one holder may stay without an answer, in milliseconds. */
export const patienceMs = 10_000

/** Milliseconds before the next claim: 10, 20, 40 up to 200. */
export const backoffMs = (attempts: number): number => Math.min(200, 10 * 2 ** Math.min(attempts, 5))

const claimAtOnce: Command = { type: "claim", afterMs: 0 }
const rest: Command = { type: "rest" }

/** The state and the command at the start: claim first (E1). */
export const begin = <E>(at: number): readonly [Election<E>, Command] => [
  { name: "electing", holder: null, since: at, attempts: 0 },
  claimAtOnce,
]

const sameHolder = (a: Holder | null, b: Holder): boolean =>
  a !== null && a.pid === b.pid && a.host === b.host && a.since === b.since

/** Whether waiting may help (E5): the holder may be just starting, just leaving or busy. */
const mayPass = (failure: AttachFailure): boolean =>
  failure._tag === "NotAnswering" && failure.reason !== "forbidden" && failure.reason !== "stranger"

/** The next state and command. An event that a state does not expect changes nothing. */
export const step = <E>(
  state: Election<E>,
  event: ElectionEvent<E>,
  patience: number = patienceMs,
): readonly [Election<E>, Command] => {
  switch (state.name) {
    case "electing":
      switch (event.type) {
        case "claimed": // E2
          return [{ name: "owning" }, rest]
        case "ownFailed": // E6
          return [{ name: "failed", reason: { type: "own", error: event.error } }, rest]
        case "held": {
          // E3; a new holder gets the whole patience (E5).
          const since = sameHolder(state.holder, event.holder) ? state.since : event.at
          return [
            { ...state, holder: event.holder, since },
            { type: "attach", holder: event.holder },
          ]
        }
        case "attached":
          return state.holder === null ? [state, rest] : [{ name: "attached", holder: state.holder }, rest]
        case "notAttached": {
          const { holder, attempts, since } = state
          if (holder === null) return [state, rest]
          if (mayPass(event.failure) && event.at - since < patience) {
            return [
              { ...state, attempts: attempts + 1 },
              { type: "claim", afterMs: backoffMs(attempts) },
            ]
          }
          return [{ name: "failed", reason: { type: "holder", holder, failure: event.failure } }, rest] // E5
        }
        default:
          return [state, rest]
      }
    case "attached": // E4
      return event.type === "gone" ? begin(event.at) : [state, rest]
    case "failed": // E7
      return event.type === "asked" ? begin(event.at) : [state, rest]
    case "owning":
      return [state, rest]
  }
}

/** One line for a person: who holds the database, why it cannot be shared, what to do. */
export const holderLine = (holder: Holder, failure: AttachFailure): string => {
  if (failure._tag === "VersionMismatch") return failure.message
  const since = new Date(holder.since).toISOString()
  return `the database is held by ${holder.program} (process ${holder.pid} on ${holder.host}, since ${since}), which cannot be reached: ${failure.message}; end that process, or give another path with --db`
}
