/**
 * The check before every request: the derived history is valid for any provider, or is repaired. What was checked once is not checked
 * again while the history only grows.
 */
import type { Message } from "../../domain/message.ts"
import { HistoryCheck, validityRules } from "../../domain/validity.ts"

export interface CheckedHistory {
  /** Holds until the next check of the same conversation. */
  readonly messages: ReadonlyArray<Message>
  /** What was repaired and not reported before. */
  readonly repairs: ReadonlyArray<string>
}

export class RequestHistory {
  private check = new HistoryCheck(validityRules.strict)
  private known: ReadonlyArray<Message> = []
  private readonly reported = new Set<string>()

  /** The messages to send for a derived context. */
  of(context: ReadonlyArray<Message>): CheckedHistory {
    if (!this.known.every((message, at) => context[at] === message)) {
      this.check = new HistoryCheck(validityRules.strict)
      this.known = []
    }
    const { messages, repairs } = this.check.append(context.slice(this.known.length))
    this.known = context
    const fresh = repairs.filter((repair) => !this.reported.has(repair))
    for (const repair of fresh) this.reported.add(repair)
    return { messages, repairs: fresh }
  }
}
