/**
 * The commands that come with Super-Pi: what each changes of `pi.agent`, and the text that the model gets in its place. Pure.
 */
import { type AgentDocument, ExecutionMode } from "../../../domain/document.ts"
import { nearest } from "../../../domain/nearest.ts"
import { looser } from "../../modes.ts"
import type { Typed } from "./expand.ts"

export const builtinNames = ["plan", "goal", "boost", "model", "mode"] as const

/** What an input becomes; `bare`: it only changes choices, and `text` says so; `fault`: it stays as it is, and this is told. */
export type Expansion =
  | { readonly type: "expanded"; readonly text: string; readonly agent: AgentDocument; readonly bare?: boolean }
  | { readonly type: "fault"; readonly message: string }

export interface Present {
  readonly mode: ExecutionMode
  readonly agent: AgentDocument
  /** Whether `/mode` may allow more than the present mode. */
  readonly raiseMode: boolean
}

const fault = (message: string): Expansion => ({ type: "fault", message: `${message}; the input stays as it is` })

/** A change with what is asked of the model, or with nothing to ask: `said` says what was changed. */
const withText = (more: string, said: string, agent: AgentDocument): Expansion =>
  more === "" ? { type: "expanded", text: said, agent, bare: true } : { type: "expanded", text: more, agent }

/** The first word and what follows. */
const firstWord = (rest: string): readonly [string, string] => {
  const [, word = "", more = ""] = /^(\S*)\s*([\s\S]*)$/.exec(rest) ?? []
  return [word, more]
}

const mode = (rest: string, { mode: present, raiseMode }: Present): Expansion => {
  const [word, more] = firstWord(rest)
  const wanted = ExecutionMode.literals.find((one) => one === word)
  if (wanted === undefined) {
    const near = nearest(word, ExecutionMode.literals)
    return fault(
      `/mode: expected one of ${ExecutionMode.literals.join(", ")} (the nearest is "${near}"), got ${JSON.stringify(word)}`,
    )
  }
  if (looser(wanted, present) && !raiseMode) {
    return fault(
      `/mode: expected a mode that allows no more than the present one (${present}), got "${wanted}": a client raises it (--mode, /mode in a chat, agent.mode), not a text`,
    )
  }
  return withText(more, `The mode is now ${wanted}.`, { mode: wanted })
}

const goal = (rest: string, { agent }: Present): Expansion => {
  if (["clear", "none", "off"].includes(rest.toLowerCase())) {
    return withText("", "The goal does not hold any more.", { goal: null })
  }
  if (rest !== "") {
    const text = `Work towards this goal until it is reached, and say when it is:\n${rest}`
    return { type: "expanded", text, agent: { goal: rest } }
  }
  return agent.goal == null
    ? fault("/goal: expected a text, got nothing, and there is no goal yet")
    : { type: "expanded", text: `Go on towards the goal: ${agent.goal}`, agent: {} }
}

/** Null for a command that is not built in. */
export const expandBuiltin = ({ name, rest }: Typed, present: Present): Expansion | null => {
  switch (name) {
    case "plan": {
      const text =
        rest === ""
          ? "Make a plan for what we are working on, and change nothing."
          : `Make a plan, and change nothing:\n${rest}`
      return { type: "expanded", text, agent: { mode: "plan" } }
    }
    case "goal":
      return goal(rest, present)
    case "boost":
      return {
        type: "expanded",
        text: rest === "" ? "Go on, and think it through thoroughly." : rest,
        agent: { boost: true },
      }
    case "model": {
      const [model, more] = firstWord(rest)
      if (model === "") return fault("/model: expected the name of a model, got nothing")
      return withText(more, `The model is now ${model}.`, { model })
    }
    case "mode":
      return mode(rest, present)
    default:
      return null
  }
}
