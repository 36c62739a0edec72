/**
 * `/output` of a chat: all that a tool call said, from the transcript.
 */
import { Effect } from "effect"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import { isJsonObject } from "../domain/json.ts"
import { type ToolResultMessage, textOf } from "../domain/message.ts"
import { oneLine, sanitize } from "../protocols/terminal/sanitize.ts"
import type { CommandContext } from "./chat-commands.ts"

/** What a result says, and the change that it made. Pure. */
export const outputLines = ({ content, details, toolName }: ToolResultMessage): ReadonlyArray<string> => {
  const change = isJsonObject(details) ? details.change : null
  const diff = isJsonObject(change) && typeof change.diff === "string" ? change.diff.trimEnd() : ""
  return [oneLine(toolName), sanitize(textOf(content)).trimEnd(), sanitize(diff)].filter((part) => part !== "")
}

export const showOutput = (
  { conversationId, screen, sessions }: CommandContext,
  argument: string,
): Effect.Effect<void, Failure> => {
  const back = argument === "" ? 1 : /^\d{1,6}$/.test(argument) ? Number(argument) : 0
  if (back < 1) {
    const expected = "nothing for the newest call, 2 for the one before, and so on"
    return new InvalidRequest({ path: "/output", expected, actual: JSON.stringify(argument) })
  }
  return Effect.map(sessions.transcript({ conversationId }), (entries) => {
    const results = entries.flatMap((entry) => entry.model).filter((message) => message.role === "tool")
    const result = results.at(-back)
    if (result === undefined)
      screen.say(results.length === 0 ? "no call was made yet" : `there are only ${results.length} calls`, "dim")
    else screen.say(outputLines(result).join("\n"))
  })
}
