/**
 * What waits in a mailbox beside plain messages. `deliver` is called by a worker when the actor's turn comes and gives the
 * handler's Effect, or null when there is nothing to do any more.
 */
import { Effect, type Tracer } from "effect"
import type { Cell } from "./cell.ts"
import type { StopReason } from "./stop-reason.ts"

export type Handling = Effect.Effect<unknown, unknown>

export abstract class Envelope {
  abstract deliver(cell: Cell): Handling | null
}

/** A message with the sender's span, or one that could be mistaken for an envelope. */
export class Letter extends Envelope {
  readonly message: unknown
  readonly span: Tracer.AnySpan | undefined

  constructor(message: unknown, span: Tracer.AnySpan | undefined) {
    super()
    this.message = message
    this.span = span
  }

  deliver(cell: Cell): Handling {
    return underSpan(cell.behavior.receive(cell.state, this.message, cell), this.span)
  }
}

/** The handler's spans become children of the sender's. */
export const underSpan = (handling: Handling, span: Tracer.AnySpan | undefined): Handling =>
  span === undefined ? handling : Effect.withParentSpan(handling, span)

/** A watched actor has ended. Never held back by a full mailbox. */
export class DownNotice extends Envelope {
  readonly watched: Cell
  readonly reason: StopReason

  constructor(watched: Cell, reason: StopReason) {
    super()
    this.watched = watched
    this.reason = reason
  }

  deliver(cell: Cell): Handling | null {
    const { watching } = cell.extras
    if (watching === null || !watching.delete(this.watched)) return null // unwatched meanwhile
    return cell.behavior.onDown?.(cell.state, { ref: this.watched, reason: this.reason }, cell) ?? null
  }
}

/** A state machine's timer has fired; dead once the machine has cancelled it. */
export class Timeout extends Envelope {
  readonly message: unknown
  live = true

  constructor(message: unknown) {
    super()
    this.message = message
  }

  deliver(cell: Cell): Handling | null {
    return this.live ? cell.behavior.receive(cell.state, this.message, cell) : null
  }
}
