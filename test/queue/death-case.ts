/**
 * What the parent and the child of the death test agree on.
 */
export interface DeathCase {
  readonly db: string
  /** File to which the worker's effect appends its idempotency key. */
  readonly effects: string
  readonly crash: {
    readonly at: "commit" | "effect"
    /** Which commit, counted from 1: the insert, the claim, the end. */
    readonly n: number
    readonly when: "before" | "after"
  } | null
}
