/**
 * What is made of a look at a node: whether work is moving, and what is wrong. Pure.
 */
import type { NodeHealth } from "../domain/cluster.ts"
import { oldestMs, type Unserved } from "./unserved.ts"

/** A turn of the event loop that takes longer counts as stuck, in ms. */
const lagLimitMs = 1_000
/** Work that waits longer while nothing is at work counts as stuck, in ms. */
export const unservedLimitMs = 60_000

export interface Look {
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly eventLoopLagMs: number
  /** Whether a read of the database worked in time. */
  readonly answered: boolean
  /** Whether the root of the node's supervision tree is there; null: the tree was not shown in time. */
  readonly rooted: boolean | null
  /** Conversations that are at work. */
  readonly busy: number
  readonly waiting: ReadonlyArray<Unserved>
  /** Conversations that cannot be started: nobody waits for those. */
  readonly broken: ReadonlySet<number>
  readonly draining: boolean
}

const seconds = (ms: number | null): string => `${Math.round((ms ?? 0) / 1000)} s`

/** Work that waits is a fault of the node only where nothing is at work: a long queue that moves is none. */
export const judgeHealth = (look: Look): NodeHealth => {
  const { broken, draining, eventLoopLagMs, now } = look
  const waiting = look.waiting.filter(({ conversation }) => conversation === null || !broken.has(conversation))
  const late = waiting.filter(({ since }) => now - since > unservedLimitMs)
  const wrong = [
    ...(look.answered ? [] : ["the database does not answer"]),
    ...(eventLoopLagMs >= lagLimitMs ? [`the event loop is ${eventLoopLagMs} ms late`] : []),
    ...(look.rooted === false ? ["the node's supervisor is gone: it does nothing any more"] : []),
    ...(late.length > 0 && look.busy === 0
      ? [`work has waited for ${seconds(oldestMs(late, now))} and nothing is at work`]
      : []),
  ]
  const healthy = wrong.length === 0
  return {
    healthy,
    ready: healthy && !draining,
    faults: [
      ...wrong,
      ...[...broken].map((id) => `conversation ${id} has open work and cannot be started; the log says why`),
      ...(draining ? ["the node is draining"] : []),
    ],
    database: look.answered ? "ok" : "failed",
    eventLoopLagMs,
    oldestUnservedMs: oldestMs(waiting, now),
    draining,
  }
}
