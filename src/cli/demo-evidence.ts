/**
 * What the demonstration proves, from the transcript and the files. Pure.
 */
import type { Entry } from "../domain/entry.ts"
import type { Event } from "../domain/event.ts"
import { type AssistantPart, type ToolResultMessage, textOf } from "../domain/message.ts"

export interface Facts {
  readonly entries: ReadonlyArray<Entry>
  /** Events of the first and the second life of the node. */
  readonly lives: readonly [ReadonlyArray<Event>, ReadonlyArray<Event>]
  /** The call that ran when the node was killed. */
  readonly killedCall: string
  readonly answer: string | null
  /** Submissions that the same request id was given, before and after. */
  readonly submissions: readonly [number, number]
  /** When the edited file was last written, before the kill and at the end, in milliseconds. */
  readonly editedAt: readonly [number, number]
  /** How often the test really started. */
  readonly testRuns: number
  /** Exit code of the test at the end, run by the demonstration itself. */
  readonly testCode: number | null
}

export interface Proof {
  readonly claim: string
  readonly holds: boolean
  readonly shown: string
}

const results = (entries: ReadonlyArray<Entry>): ReadonlyArray<ToolResultMessage> =>
  entries.flatMap((entry) => entry.model.flatMap((message) => (message.role === "tool" ? [message] : [])))

const calls = (entries: ReadonlyArray<Entry>) =>
  entries.flatMap((entry) =>
    entry.model.flatMap((message) =>
      message.role === "assistant" ? message.content.filter((part: AssistantPart) => part.type === "toolCall") : [],
    ),
  )

const started = (events: ReadonlyArray<Event>, name: string): number =>
  events.filter((event) => event.type === "tool_started" && event.name === name).length

export const prove = (facts: Facts): ReadonlyArray<Proof> => {
  const { entries, lives, killedCall, answer, submissions, editedAt, testRuns, testCode } = facts
  const all = results(entries)
  const edits = all.filter((result) => result.toolName === "edit")
  const interrupted = all.find((result) => result.callId === killedCall)
  const repeats = lives[1].filter((event) => event.type === "tool_started" && event.call_id === killedCall).length
  const bashCalls = calls(entries).filter((call) => call.name === "bash").length
  const editStarts = started(lives[0], "edit") + started(lives[1], "edit")
  const unanswered = calls(entries).filter((call) => !all.some((result) => result.callId === call.id))
  return [
    {
      claim: "the edit ran once",
      holds: editStarts === 1 && edits.length === 1 && edits[0]?.isError === false && editedAt[0] === editedAt[1],
      shown: `${editStarts} start over both lives, ${edits.length} result, the file untouched since before the kill`,
    },
    {
      claim: "the killed call was not run again, but reported to the model as interrupted",
      holds: interrupted?.isError === true && repeats === 0 && /interrupted/i.test(textOf(interrupted.content)),
      shown:
        interrupted === undefined
          ? "it has no result"
          : `${repeats} repeats; its result: ${textOf(interrupted.content)}`,
    },
    {
      claim: "the test started only as often as the model asked for it",
      holds: testRuns === bashCalls && bashCalls === 2,
      shown: `${bashCalls} calls, ${testRuns} starts: the killed one, and the one that the model asked for after it had read why`,
    },
    {
      claim: "the prompt was admitted once",
      holds: submissions[0] === submissions[1],
      shown: `the same request id gave submission ${submissions[0]} before and ${submissions[1]} after`,
    },
    {
      claim: "every call has its result",
      holds: unanswered.length === 0 && all.length === calls(entries).length,
      shown: `${calls(entries).length} calls, ${all.length} results`,
    },
    {
      claim: "the turn was finished",
      holds: answer !== null && answer !== "" && testCode === 0,
      shown: `the answer is there, and the test passes now`,
    },
  ]
}
