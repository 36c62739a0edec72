/**
 * What can be chosen in a session: modes, and configuration options (model, mode, effort, harness). Pure.
 */
import type { SessionConfigOption, SessionModeState } from "@agentclientprotocol/sdk"
import { Either } from "effect"
import { type AgentDocument, Effort, ExecutionMode } from "../../domain/document.ts"
import type { SessionState } from "../../domain/event.ts"
import { InvalidRequest } from "../../domain/failure.ts"
import type { HarnessListing } from "../../domain/harness-view.ts"
import { remoteMode } from "../../domain/permissions-policy.ts"
import type { RemoteRules } from "../remote.ts"
import type { ListedModel } from "../service.ts"

/** What a node has to choose from. */
export interface Catalog {
  readonly models: ReadonlyArray<ListedModel>
  readonly harnesses: HarnessListing
  readonly rules: RemoteRules
}

/** What a session has chosen. */
export interface Choices {
  readonly model: string
  readonly mode: string
  /** Null: the node's default. */
  readonly effort: string | null
  readonly harness: string | null
}

export const choicesOf = (session: SessionState): Choices => ({
  model: session.model,
  mode: session.mode,
  effort: session.effort ?? null,
  harness: session.harness,
})

const modeNames: Readonly<Record<ExecutionMode, readonly [name: string, description: string]>> = {
  plan: ["Plan", "Reads and searches; changes nothing"],
  "accept-edits": ["Accept edits", "Edits files; asks before commands that are not allowed yet"],
  auto: ["Auto", "Edits files and runs commands without asking"],
}

/** The modes that a session may have: those of its harness, as far as the node lets callers go. */
const modesOf = (choices: Choices, { harnesses, rules }: Catalog): ReadonlyArray<ExecutionMode> => {
  const harness = harnesses.harnesses.find(({ id }) => id === choices.harness)
  return (harness?.modes ?? ExecutionMode.literals).filter((mode) => remoteMode(mode, rules.ownMode, rules) === mode)
}

/** The present mode is listed too, where somebody with more rights chose it. */
const shownModes = (choices: Choices, catalog: Catalog): ReadonlyArray<string> => {
  const modes: ReadonlyArray<string> = modesOf(choices, catalog)
  return modes.includes(choices.mode) ? modes : [...modes, choices.mode]
}

const described = (mode: string): { readonly name: string; readonly description?: string } => {
  const known = ExecutionMode.literals.find((one) => one === mode)
  return known === undefined ? { name: mode } : { name: modeNames[known][0], description: modeNames[known][1] }
}

export const modeState = (choices: Choices, catalog: Catalog): SessionModeState => ({
  currentModeId: choices.mode,
  availableModes: shownModes(choices, catalog).map((id) => ({ id, ...described(id) })),
})

const unset = "default"

/** All options with their present values, as the protocol wants them: always whole. */
export const configOptions = (choices: Choices, catalog: Catalog): Array<SessionConfigOption> => {
  const { harnesses, models } = catalog
  const { effort, harness, mode, model } = choices
  const listed = models.map(({ id, name }) => ({ value: id, name }))
  const options: Array<SessionConfigOption> = [
    {
      type: "select",
      id: "model",
      name: "Model",
      category: "model",
      currentValue: model,
      options: listed.some(({ value }) => value === model) ? listed : [{ value: model, name: model }, ...listed],
    },
    {
      type: "select",
      id: "mode",
      name: "Mode",
      category: "mode",
      currentValue: mode,
      options: shownModes(choices, catalog).map((value) => ({ value, ...described(value) })),
    },
    {
      type: "select",
      id: "effort",
      name: "Effort",
      category: "thought_level",
      currentValue: effort ?? unset,
      options: [
        ...(effort === null ? [{ value: unset, name: "Default" }] : []),
        ...Effort.literals.map((value) => ({ value, name: `${value.slice(0, 1).toUpperCase()}${value.slice(1)}` })),
      ],
    },
  ]
  if (harnesses.harnesses.length === 0) return options
  const known = harnesses.harnesses.map(({ description, id, name }) => ({ value: id, name, description }))
  const current = harness ?? "none"
  options.push({
    type: "select",
    id: "harness",
    name: "Harness",
    description: "What the agent is: its plugins, tools and modes",
    category: "_harness",
    currentValue: current,
    options: known.some(({ value }) => value === current) ? known : [{ value: current, name: current }, ...known],
  })
  return options
}

const invalid = (path: string, expected: string, actual: string) =>
  Either.left(new InvalidRequest({ path, expected, actual }))

const quoted = (names: ReadonlyArray<string>): string => names.map((name) => JSON.stringify(name)).join(", ")

/** A choice of a mode. */
export const chosenMode = (
  path: string,
  value: string,
  choices: Choices,
  catalog: Catalog,
): Either.Either<AgentDocument, InvalidRequest> => {
  const modes = modesOf(choices, catalog)
  const mode = modes.find((one) => one === value)
  return mode === undefined
    ? invalid(path, `one of ${quoted(modes)}`, JSON.stringify(value.slice(0, 60)))
    : Either.right({ mode })
}

/** What setting one option changes. A model and a harness that are not there are refused by the conversation itself. */
export const chosenOption = (
  id: string,
  value: string | boolean,
  choices: Choices,
  catalog: Catalog,
): Either.Either<AgentDocument, InvalidRequest> => {
  if (typeof value !== "string" || value === "") return invalid("value", "a text", JSON.stringify(value))
  switch (id) {
    case "model":
      return Either.right(value === choices.model ? {} : { model: value })
    case "mode":
      return chosenMode("value", value, choices, catalog)
    case "effort": {
      if (value === unset && choices.effort === null) return Either.right({})
      const effort = Effort.literals.find((one) => one === value)
      return effort === undefined
        ? invalid("value", `one of ${quoted(Effort.literals)}`, JSON.stringify(value.slice(0, 60)))
        : Either.right({ effort })
    }
    case "harness":
      return Either.right(
        value === choices.harness || (value === "none" && choices.harness === null) ? {} : { harness: value },
      )
    default:
      return invalid(
        "configId",
        `one of ${quoted(["model", "mode", "effort", "harness"])}`,
        JSON.stringify(id.slice(0, 60)),
      )
  }
}
