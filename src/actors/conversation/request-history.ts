/**
 * The check before every request: the derived history is valid for any provider, or is repaired. What was checked once is not checked
 * again while the history only grows.
 */
import { AppendLog } from "../../domain/append-log.ts"
import { type ContextState, contextOf } from "../../domain/context.ts"
import type { Message } from "../../domain/message.ts"
import { HistoryCheck, type Repaired, validityRules } from "../../domain/validity.ts"

export interface CheckedHistory {
  /** Holds until the next check of the same conversation. */
  readonly messages: ReadonlyArray<Message>
  /** What was repaired and not reported before. */
  readonly repairs: ReadonlyArray<string>
}

const newCheck = (): HistoryCheck => new HistoryCheck(validityRules.strict)

export class RequestHistory {
  private check = newCheck()
  /** The settled messages that `check` has taken. */
  private known: AppendLog<Message> = AppendLog.from<Message>([])
  private readonly reported = new Set<string>()

  /** The messages to send for a derived context. */
  of(context: ContextState): CheckedHistory {
    const { messages, repairs } =
      context.tail.length === 0 ? this.grow(context.settled) : newCheck().append(contextOf(context))
    const fresh = repairs.filter((repair) => !this.reported.has(repair))
    for (const repair of fresh) this.reported.add(repair)
    return { messages, repairs: fresh }
  }

  private grow(settled: AppendLog<Message>): Repaired {
    if (!settled.extends(this.known)) {
      this.check = newCheck()
      this.known = AppendLog.from<Message>([])
    }
    const fresh = settled.slice(this.known.length)
    this.known = settled
    return this.check.append(fresh)
  }
}
