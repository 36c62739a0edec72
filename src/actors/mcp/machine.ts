/**
 * What a connection to an MCP server does next. Pure; the actor around it (actor.ts) performs it.
 *
 *   connecting → ready                     the handshake and the list of tools went well
 *   connecting → backoff | needs_login | failed
 *   ready → backoff                        the connection was lost
 *   ready → connecting                     its session has expired, or a restart was asked for
 *   backoff → connecting                   its time is over
 *   needs_login | failed → connecting      a restart was asked for; or a call came, and another attempt may help
 */
import type { ConnectProblem } from "./connection.ts"

/** States of a server that is started. */
export type LinkState = "connecting" | "ready" | "backoff" | "needs_login" | "failed"

/** How it went so far. */
export interface History {
  /** Attempts in a row that failed, and losses soon after a success. */
  readonly failures: number
  /** Connections made after the first. */
  readonly restarts: number
  /** When it became ready last, in ms; null before. */
  readonly readyAt: number | null
}

export const newHistory: History = { failures: 0, restarts: 0, readyAt: null }

/** Between the first failure and the next attempt, doubled with each further one up to the second figure, in ms. */
const backoffMs = [500, 60_000] as const
/** Failures in a row after which nobody tries any more before somebody wants something of the server. */
const maxFailures = 10
/** A connection that lasted this long makes earlier failures forgotten, in ms. */
const steadyMs = 60_000

export interface Step {
  readonly state: LinkState
  readonly history: History
  /** Only in `backoff`: until the next attempt. */
  readonly waitMs: number
}

const later = (history: History, random: number): Step => {
  const failures = history.failures + 1
  const [first, most] = backoffMs
  const waitMs = Math.round(Math.min(most, first * 2 ** (failures - 1)) * (0.5 + random / 2))
  return { state: failures >= maxFailures ? "failed" : "backoff", history: { ...history, failures }, waitMs }
}

/** After an attempt that failed. `random` is in [0, 1). */
export const afterFailure = (history: History, problem: ConnectProblem, random: number): Step => {
  if (problem === "unreachable") return later(history, random)
  return { state: problem === "login" ? "needs_login" : "failed", history, waitMs: 0 }
}

/** After an attempt that went well. */
export const afterSuccess = (history: History, now: number): History => ({
  failures: history.failures,
  restarts: history.readyAt === null ? history.restarts : history.restarts + 1,
  readyAt: now,
})

/** After the loss of a connection. */
export const afterLoss = (history: History, now: number, random: number): Step => {
  const steady = history.readyAt !== null && now - history.readyAt >= steadyMs
  return later(steady ? { ...history, failures: 0 } : history, random)
}

/** Whether a call is a reason to try again. What is configured wrong stays so. */
export const triesForCall = (state: LinkState, problem: ConnectProblem | null): boolean =>
  state === "needs_login" || (state === "failed" && problem !== "misconfigured")
