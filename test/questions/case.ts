/**
 * What the kill tests' parent and child agree on: where the child dies, what the person in it says, and the turn that it runs.
 */

/** The child kills itself around the `n`-th commit of its life, counted from 1. */
export interface KillPoint {
  readonly n: number
  readonly when: "before" | "after"
}

export interface KillCase {
  readonly db: string
  /** The outside world: a line for each time the tool acted. */
  readonly acts: string
  readonly kill: KillPoint | null
  /** `act`: a call that has to be allowed. `ask`: the tool `ask_question`. */
  readonly turn: "act" | "ask"
  readonly says: "allow_once" | "reject_once"
}

/** The child's last line. */
export interface Told {
  readonly status: string
  readonly commits: number
  /** How often the person was asked in this life. */
  readonly asked: number
}

export const rules = [
  { match: "^act$", steps: [{ text: "acting", tools: [{ name: "act", args: {} }] }, { text: "done" }] },
  {
    match: "^ask$",
    steps: [
      {
        text: "asking",
        tools: [{ name: "ask_question", args: { questions: [{ question: "Which?", options: [{ label: "red" }] }] } }],
      },
      { text: "done" },
    ],
  },
]
