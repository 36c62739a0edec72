/**
 * `/undo`, `/undo ID`, `/undo ?` and, with a `!` behind it, over what somebody else changed since.
 */
import { Effect } from "effect"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import type { CommandContext } from "./chat-commands.ts"
import { checkpointLines, undoLines } from "./undo.ts"

export const chatUndo = (
  { conversationId, screen, sessions }: CommandContext,
  argument: string,
): Effect.Effect<void, Failure> => {
  const said = /^(?:(\?)|(\d{1,9})?\s*(!)?)$/.exec(argument.trim())
  if (said === null) {
    const expected = "nothing, the number of a checkpoint, or ? for a list"
    return new InvalidRequest({ path: "/undo", expected, actual: JSON.stringify(argument) })
  }
  const [, ask, number, forced] = said
  if (ask !== undefined) {
    return Effect.map(sessions.checkpoints({ conversationId }), (views) => {
      const lines = views.flatMap((view) => checkpointLines(view, Date.now()))
      screen.say(lines.length === 0 ? "nothing to undo" : lines.join("\n"), "dim")
    })
  }
  const checkpoint = number === undefined ? null : Number(number)
  return Effect.map(sessions.undo({ conversationId, checkpoint, force: forced !== undefined }), (result) =>
    screen.say(undoLines(result).join("\n").replaceAll("super-pi undo", "/undo"), "dim"),
  )
}
