/**
 * The status of an actor.
 *
 *   STARTING → IDLE → QUEUED → RUNNING → IDLE | QUEUED
 *   STARTING, IDLE, QUEUED, RUNNING → STOPPING (a restart may follow) → DOWN → STARTING | DEAD
 *   any but DEAD → CLOSING (final) → DEAD
 *
 * Mail is accepted below CLOSING, and starts work in IDLE only. The order of the numbers is used.
 */
export const IDLE = 0
export const QUEUED = 1
export const RUNNING = 2
export const STARTING = 3
export const STOPPING = 4
export const DOWN = 5
export const CLOSING = 6
export const DEAD = 7

export type Status = 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7

/** For people, in the live tree. */
export const statusNames = ["idle", "queued", "running", "starting", "stopping", "down", "stopping", "dead"] as const

/** The state of an actor whose `init` has not succeeded. */
export const UNBORN: unique symbol = Symbol("unborn")
