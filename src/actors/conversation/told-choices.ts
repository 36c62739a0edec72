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

  /** What watchers have to be told now, or null. `view` is the data as others see it. */
  news(view: Data): Choices | null {
    const { agent, conversation, run } = view
    const { title } = conversation
    const model = run?.model ?? ""
    const { told } = this
    if (told !== null && told.agent === agent && told.title === title && told.model === model) return null
    const choices = choicesOf(view, this.defaults)
    this.told = { agent, title, model, choices }
    // Before the first one nobody watches.
    return told === null || sameChoices(told.choices, choices) ? null : choices
  }
}
