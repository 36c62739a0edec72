/**
 * The choices of a conversation as its watchers know them. Owned by the shell, which asks after every decision; most of them change none of
 * what choices come from, and cost three comparisons.
 */
import type { Data } from "./machine/data.ts"
import { type Choices, choicesOf, type Defaults, sameChoices } from "./view.ts"

export class ToldChoices {
  private told: {
    readonly agent: Data["agent"]
    readonly title: string | null
    readonly model: string
    readonly choices: Choices
  } | null = null
  private readonly defaults: Defaults

  constructor(defaults: Defaults) {
    this.defaults = defaults
  }

  /** What watchers have to be told now, or null. `agent` is the choices in force. */
  news({ conversation, run }: Data, agent: Data["agent"]): Choices | null {
    const { title } = conversation
    const model = run?.model ?? ""
    const { told } = this
    if (told !== null && told.agent === agent && told.title === title && told.model === model) return null
    const choices = choicesOf({ agent, conversation, run }, this.defaults)
    this.told = { agent, title, model, choices }
    // Before the first one nobody watches.
    return told === null || sameChoices(told.choices, choices) ? null : choices
  }
}
