/**
 * What a conversation cost, by the prices of the settings: from its transcript, then from the events. Responses of models without a price,
 * and those that no transcript shows (summaries, subagents), are not in it.
 */
import { costOf, type Prices } from "../domain/budget.ts"
import type { Entry } from "../domain/entry.ts"
import type { Event } from "../domain/event.ts"

export interface Meter {
  /** Starts over from a transcript. */
  readonly begin: (entries: ReadonlyArray<Entry>) => void
  readonly event: (event: Event) => void
  /** US dollars; null where no model that was asked has a price. */
  readonly dollars: () => number | null
}

/** US dollars of the responses of a transcript, or null. Pure. */
export const costOfEntries = (entries: ReadonlyArray<Entry>, prices: Prices): number | null => {
  let sum: number | null = null
  for (const message of entries.flatMap((entry) => entry.model)) {
    if (message.role !== "assistant" || message.usage === undefined) continue
    const price = prices[message.model]
    if (price !== undefined) sum = (sum ?? 0) + costOf(message.usage, price)
  }
  return sum
}

export const makeMeter = (prices: Prices): Meter => {
  let sum: number | null = null
  /** Of the newest turn. */
  let model = ""
  return {
    begin: (entries) => {
      sum = costOfEntries(entries, prices)
    },
    event: (event) => {
      if (event.type === "turn_started") model = event.model
      if (event.type !== "usage_updated") return
      const price = prices[model]
      if (price !== undefined) sum = (sum ?? 0) + costOf(event.usage, price)
    },
    dollars: () => sum,
  }
}
