/**
 * `/queue` of a chat: what waits for its turn, and how it is taken back.
 */
import { Effect } from "effect"
import type { SubmissionView } from "../actors/contract.ts"
import { type Failure, InvalidRequest } from "../domain/failure.ts"
import { SubmissionId } from "../domain/ids.ts"
import { isJsonObject, type Json } from "../domain/json.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import { truncate } from "../protocols/terminal/width.ts"
import type { CommandContext } from "./chat-commands.ts"

/** Columns of what was submitted. */
const previewColumns = 60

const textIn = (parts: Json | undefined): string =>
  Array.isArray(parts)
    ? parts.flatMap((part) => (isJsonObject(part) && typeof part.text === "string" ? [part.text] : [])).join(" ")
    : ""

/** What a queued submission is, on one line. Pure. */
export const queueLine = ({ content, kind, submission_id, when_busy }: SubmissionView): string => {
  const given = isJsonObject(content) ? content : {}
  const what =
    kind === "write" ? (given.kind === "pi.reset" ? "reset" : "write") : when_busy === "steer" ? "steer" : "prompt"
  const entry = typeof given.kind === "string" ? given.kind : ""
  const words = kind === "write" ? (what === "reset" ? "" : entry) : textIn(given.content)
  return `${submission_id}  ${what}${words === "" ? "" : `  ${truncate(oneLine(words), previewColumns)}`}`
}

export const queue = (
  { sessions, screen, conversationId }: CommandContext,
  argument: string,
): Effect.Effect<void, Failure> => {
  if (argument === "") {
    return Effect.map(sessions.submissions({ conversationId }), (rows) => {
      const queued = rows.filter((row) => row.status === "queued")
      if (queued.length === 0) screen.say("nothing is queued", "dim")
      else screen.say([...queued.map(queueLine), "/queue NUMBER takes one back"].join("\n"), "dim")
    })
  }
  const id = /^\d{1,15}$/.test(argument) ? Number(argument) : 0
  if (id < 1) {
    return new InvalidRequest({
      path: "/queue",
      expected: "the number of what is queued",
      actual: JSON.stringify(argument),
    })
  }
  const submissionId = SubmissionId.make(id)
  // What was queued until now is told by its event, to everybody.
  const told = screen.view().queued.has(submissionId)
  return Effect.map(sessions.withdraw({ conversationId, submissionId }), () => {
    if (!told) screen.say(`took back ${id}`, "dim")
  })
}
