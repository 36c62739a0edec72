/**
 * What the crash test's parent and child agree on: where the child dies, what it prints, and the turn that it runs.
 */
import type { Script } from "../../src/models/providers/script-file.ts"

/** The child kills itself at the `n`-th commit, model request or call of a tool of its life, counted from 1. */
export interface CrashPoint {
  readonly at: "commit" | "model" | "tool"
  readonly n: number
  /** `during` is after the first streamed part of a model, or after a tool's effect has begun; a commit has no inside. */
  readonly when: "before" | "during" | "after"
}

/** One life of the child. */
export interface CrashCase {
  readonly db: string
  /** File that tools append to, outside the workspace. */
  readonly effects: string
  readonly workspace: string
  readonly crash: CrashPoint | null
  /** Whether a second input is queued while the first turn runs its calls. */
  readonly followUp: boolean
  /** Whether the conversation is long, so that the turn's second request waits for a compaction. */
  readonly compaction: boolean
}

/** Lines that the child prints, each before it goes on: what they say was acknowledged. */
export type ChildLine =
  | { readonly type: "opened"; readonly conversation: number }
  | { readonly type: "acknowledged"; readonly submission: number }
  | {
      readonly type: "committed"
      readonly seq: number
      readonly entries: ReadonlyArray<number>
      readonly tasks: ReadonlyArray<number>
      readonly submissions: ReadonlyArray<number>
    }
  | { readonly type: "settled"; readonly request: string; readonly status: string; readonly text: string | null }
  | { readonly type: "counts"; readonly commit: number; readonly model: number; readonly tool: number }

export const prompt = "please work"
export const answer = "all three are done"
/** What comes before the turn where a compaction is wanted. */
export const storyPrompt = "a long story"
export const nextPrompt = "and then?"
export const nextAnswer = "nothing more"

/** What the call that may be repeated writes. */
export const safeLine = "look b.2"

/** A turn with three calls at once (unsafe, safe, unsafe), then the answer. */
export const script: Script = {
  rules: [
    { match: "^Summarise the conversation below", steps: [{ text: "## Goal\nto work" }] },
    { match: "^The earlier part of this conversation was compacted", steps: [{ text: answer }] },
    { match: `^${storyPrompt}$`, steps: [{ text: "once upon a time ".repeat(200) }] },
    {
      match: "^please work$",
      steps: [
        {
          text: "three calls",
          usage: [120_000, 10],
          tools: [
            { name: "append", args: { line: "start a.1" } },
            { name: "look", args: { line: safeLine } },
            { name: "append", args: { line: "start c.3" } },
          ],
        },
        { text: answer },
      ],
    },
    { match: "^and then\\?$", steps: [{ text: nextAnswer }] },
  ],
}

/** Tokens of the calls that may run at most once. */
export const unsafeTokens = ["a.1", "c.3"]
