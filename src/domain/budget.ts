/**
 * Budgets: a limit on the tokens, turns and cost of a conversation and of all its subagents together. Counted from `pi.usage`, where every
 * response is committed with its tokens; checked before each request, so responses that are under way when it is reached still count. Pure.
 */
import { Schema } from "effect"
import type { UsageDocument } from "./document.ts"
import type { Usage } from "./usage.ts"

const positive = Schema.Number.pipe(Schema.finite(), Schema.positive())

/** What a tree of conversations may take; an absent limit is none. */
export const Budget = Schema.Struct({
  /** Input and output tokens. */
  maxTokens: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** Model responses. */
  maxTurns: Schema.optional(Schema.Int.pipe(Schema.positive())),
  /** US dollars, by the settings' `models.prices`. */
  maxCost: Schema.optional(positive),
})
export type Budget = typeof Budget.Type

const price = Schema.Number.pipe(Schema.finite(), Schema.nonNegative())

/** US dollars per million tokens of one model. */
export const Price = Schema.Struct({
  input: price,
  output: price,
  /** Tokens that the provider's cache gave; default: as `input`. */
  cacheRead: Schema.optional(price),
  /** Tokens that were written to the provider's cache; default: as `input`. */
  cacheWrite: Schema.optional(price),
})
export type Price = typeof Price.Type

/** By `provider/model`. */
export type Prices = Readonly<Record<string, Price>>

/** What was taken so far. */
export interface Spend {
  readonly tokens: number
  readonly turns: number
  /** US dollars of the models that have a price. */
  readonly cost: number
  /** Models that were used and have none. */
  readonly unpriced: ReadonlyArray<string>
}

const perMillion = 1_000_000

/** US dollars. Cached tokens are part of `usage.input` and have prices of their own. */
export const costOf = (usage: Usage, { cacheRead, cacheWrite, input, output }: Price): number => {
  const fresh = Math.max(0, usage.input - usage.cacheRead - usage.cacheWrite)
  return (
    (fresh * input +
      usage.cacheRead * (cacheRead ?? input) +
      usage.cacheWrite * (cacheWrite ?? input) +
      usage.output * output) /
    perMillion
  )
}

type Part = Pick<UsageDocument, "models" | "turns">

/** What conversations took, each with what its ended subagents did. */
export const spendOf = (documents: ReadonlyArray<UsageDocument>, prices: Prices): Spend => {
  const parts: ReadonlyArray<Part> = documents.flatMap((one) =>
    one.subagents === undefined ? [one] : [one, one.subagents],
  )
  const used = parts.flatMap(({ models }) => Object.entries(models))
  const unpriced = new Set<string>()
  let tokens = 0
  let cost = 0
  for (const [model, usage] of used) {
    const known = prices[model]
    tokens += usage.input + usage.output
    if (known === undefined) unpriced.add(model)
    else cost += costOf(usage, known)
  }
  return { tokens, cost, turns: parts.reduce((sum, { turns = 0 }) => sum + turns, 0), unpriced: [...unpriced] }
}

/** Why nothing more may be asked of a model: which limit, one sentence, and whether a higher limit would help. */
export interface Exhausted {
  readonly limit: keyof Budget
  readonly detail: string
  readonly extensible: boolean
}

const dollars = (value: number): string => `$${value.toFixed(value < 1 ? 4 : 2)}`

/** The limit that is reached, or null. `model` is about to be asked: a cost limit needs its price. */
export const exhausted = (budget: Budget, spend: Spend, prices: Prices, model: string): Exhausted | null => {
  const { maxCost, maxTokens, maxTurns } = budget
  const of = "with all subagents"
  if (maxTokens !== undefined && spend.tokens >= maxTokens) {
    return { limit: "maxTokens", extensible: true, detail: `${spend.tokens} of ${maxTokens} tokens are used, ${of}` }
  }
  if (maxTurns !== undefined && spend.turns >= maxTurns) {
    return { limit: "maxTurns", extensible: true, detail: `${spend.turns} of ${maxTurns} turns are used, ${of}` }
  }
  if (maxCost === undefined) return null
  if (spend.cost >= maxCost) {
    const detail = `${dollars(spend.cost)} of ${dollars(maxCost)} are spent, ${of}`
    return { limit: "maxCost", extensible: true, detail }
  }
  const unknown = [...spend.unpriced, ...(prices[model] === undefined && model !== "" ? [model] : [])][0]
  return unknown === undefined
    ? null
    : { limit: "maxCost", extensible: false, detail: `models.prices: expected a price of ${unknown}, got none` }
}

/** The budget with twice as much of what ran out, as a person allows it. */
export const doubled = (budget: Budget, { limit }: Exhausted): Budget => ({
  ...budget,
  [limit]: (budget[limit] ?? 0) * 2,
})
