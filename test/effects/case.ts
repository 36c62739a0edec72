/**
 * What the kill tests' parent and child agree on: where the child dies, and the turn that it runs.
 */
import type { Script } from "../../src/models/providers/script-file.ts"

/**
 * Where a life ends itself: around the effect of the call, in the middle of finding out, or around the `n`-th commit of the life (from 1).
 */
export type KillPoint =
  | { readonly at: "effect"; readonly when: "before" | "during" | "after" }
  | { readonly at: "reconcile" }
  | { readonly at: "commit"; readonly n: number; readonly when: "before" | "after" }

/** What the tool finds out about a call that was cut off: the truth, nothing, or a failure; `none`: it has no `reconcile`. */
export type Finding = "truth" | "unknown" | "fails" | "none"

export interface KillCase {
  readonly db: string
  /** The outside world: a file with one line for each payment, under its idempotency key. */
  readonly payments: string
  readonly kill: KillPoint | null
  readonly finding: Finding
}

export const prompt = "please pay"
export const answer = "paid or not, I go on"

export const script: Script = {
  rules: [
    {
      match: "^please pay$",
      steps: [{ text: "I pay", tools: [{ name: "pay", args: { amount: 100 } }] }, { text: answer }],
    },
  ],
}
