/**
 * What a state machine's handler answers: the next state, and what to do beside. As OTP's gen_statem.
 */
import type { StopReason } from "./stop-reason.ts"

export type Action<M> =
  /** Sends `message` to the machine after `ms`, unless the state changes before. Replaces a declared state timeout. */
  | { readonly _tag: "StateTimeout"; readonly ms: number; readonly message: M }
  /** Sends `message` after `ms`, in whatever state; a second timeout of that name replaces the first. */
  | { readonly _tag: "Timeout"; readonly name: string; readonly ms: number; readonly message: M }
  /** A timeout that was cancelled is not delivered, even when it has fired already. */
  | { readonly _tag: "CancelTimeout"; readonly name: string }
  /** Handles `message` next, before everything that waits. */
  | { readonly _tag: "NextEvent"; readonly message: M }

export type Transition<State extends string, Data, M> =
  | { readonly _tag: "Next"; readonly state: State; readonly data: Data; readonly actions: ReadonlyArray<Action<M>> }
  | { readonly _tag: "Keep"; readonly data: Data; readonly actions: ReadonlyArray<Action<M>> }
  | { readonly _tag: "Postpone" }
  | { readonly _tag: "Stop"; readonly reason: StopReason | null }

const noActions: ReadonlyArray<never> = []

/** Moves to `state`. To the state it is in already is the same as `keep`: no enter effect, no re-delivery, timeouts stay. */
export const next = <const State extends string, Data, M = never>(
  state: State,
  data: Data,
  actions: ReadonlyArray<Action<M>> = noActions,
): Transition<State, Data, M> => ({ _tag: "Next", state, data, actions })

/** Stays in the state with new data. */
export const keep = <Data, M = never>(
  data: Data,
  actions: ReadonlyArray<Action<M>> = noActions,
): Transition<never, Data, M> => ({ _tag: "Keep", data, actions })

/** Keeps the message for later: it is delivered again, in order, on the next state change. */
export const postpone: Transition<never, never, never> = { _tag: "Postpone" }

/** Ends the machine. Default reason: normal. */
export const stopMachine = (reason: StopReason | null = null): Transition<never, never, never> => ({
  _tag: "Stop",
  reason,
})

export const stateTimeout = <M>(ms: number, message: M): Action<M> => ({ _tag: "StateTimeout", ms, message })
export const timeout = <M>(name: string, ms: number, message: M): Action<M> => ({ _tag: "Timeout", name, ms, message })
export const cancelTimeout = (name: string): Action<never> => ({ _tag: "CancelTimeout", name })
export const nextEvent = <M>(message: M): Action<M> => ({ _tag: "NextEvent", message })
