/**
 * Answers that count for the rest of a session: kept in `settingsOverride.permissions` of `pi.agent`, never in a file. Pure.
 */
import type { AgentDocument } from "./document.ts"
import { isJsonObject, type Json, type JsonObject } from "./json.ts"
import type { PermissionAnswer, Remembered } from "./question.ts"
import { isAllowed } from "./question.ts"

const textsOf = (value: Json | undefined): ReadonlyArray<string> =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : []

/** `more` behind what is there, each once. */
const added = (value: Json | undefined, more: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set([...textsOf(value), ...more]),
]

const objectOf = (value: Json | undefined): JsonObject => (isJsonObject(value) ? value : {})

/** The choices of a session after an answer: `allow_always` and `reject_always` add to them, the others change nothing. */
export const remember = (agent: AgentDocument, answer: PermissionAnswer, what: Remembered): AgentDocument => {
  const nothing = what.commands.length === 0 && what.tools.length === 0
  if (nothing || answer === "allow_once" || answer === "reject_once") return agent
  const [commandKey, toolKey] = isAllowed(answer) ? ["allow", "allowTools"] : ["deny", "denyTools"]
  const override = objectOf(agent.settingsOverride)
  const permissions = objectOf(override.permissions)
  const commands = what.commands.length === 0 ? {} : { [commandKey]: added(permissions[commandKey], what.commands) }
  const tools = what.tools.length === 0 ? {} : { [toolKey]: added(permissions[toolKey], what.tools) }
  return { ...agent, settingsOverride: { ...override, permissions: { ...permissions, ...commands, ...tools } } }
}
