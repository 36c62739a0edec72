/**
 * Tool calls as a terminal shows them: what a running one said last, the line of one that ended, and what stands below it. Pure.
 */
import type { Event } from "../../domain/event.ts"
import { isJsonObject, type JsonObject } from "../../domain/json.ts"
import { textOf } from "../../domain/message.ts"
import { duration, shortArguments } from "./format.ts"
import { oneLine, sanitize } from "./sanitize.ts"
import type { Tone } from "./style.ts"
import { truncate } from "./width.ts"

/** A running call. */
export interface ToolProgress {
  readonly name: string
  readonly summary: string
  /** The newest lines of its output that are not blank, the newest last. */
  readonly tail: ReadonlyArray<string>
}

/** Lines that stand below the line of a call. */
export interface Detail {
  readonly diff: boolean
  readonly lines: ReadonlyArray<string>
}

type Completed = Extract<Event, { readonly type: "tool_completed" }>

const summaryColumns = 60
const tailLines = 4
const tailColumns = 500
/** Lines of a diff, and of output at its start and at its end, that are shown. */
const diffLines = 30
const headLines = 2
const lastLines = 6

export const startTool = (name: string, args: JsonObject): ToolProgress => ({
  name: oneLine(name),
  summary: shortArguments(args, summaryColumns),
  tail: [],
})

/** Behind more of its output. */
export const moreOutput = (tool: ToolProgress, delta: string): ToolProgress => {
  // What is far from the end of a long piece is not looked at.
  const lines = delta
    .slice(-tailLines * tailColumns)
    .split(/[\r\n]/)
    .map((one) => truncate(oneLine(one), tailColumns))
    .filter((one) => one !== "")
  return lines.length === 0 ? tool : { ...tool, tail: [...tool.tail, ...lines].slice(-tailLines) }
}

/** For example `exit 2`, `signal SIGTERM`, `timed out`, `+3 -1`; "" where there is nothing to say. */
const outcome = ({ details }: Completed): string => {
  if (!isJsonObject(details)) return ""
  const { change, exitCode, signal, timedOut } = details
  if (timedOut === true) return "timed out"
  if (typeof signal === "string") return `signal ${oneLine(signal)}`
  if (typeof exitCode === "number") return `exit ${exitCode}`
  if (!isJsonObject(change)) return ""
  return typeof change.added === "number" && typeof change.removed === "number"
    ? `+${change.added} -${change.removed}`
    : ""
}

/** The line of a call that ended. Why it failed is in it where no `details` below say so. */
export const endLine = (
  event: Completed,
  tool: ToolProgress | undefined,
  details: ReadonlyArray<Detail>,
): { readonly tone: Tone; readonly text: string } => {
  const summary = tool?.summary ?? ""
  const head = `${event.is_error ? "✗" : "✓"} ${oneLine(event.name)}${summary === "" ? "" : ` ${summary}`}`
  const ended = outcome(event)
  const facts = [...(ended === "" || ended === "exit 0" ? [] : [ended]), duration(event.duration_ms)].join(", ")
  const said = event.is_error && details.length === 0 ? truncate(oneLine(textOf(event.output)), 100) : ""
  const why = said === "" ? "" : `: ${said}`
  return { tone: event.is_error ? "error" : "dim", text: `${head} (${facts})${why}` }
}

/** How many lines are left out, and how to see them. */
const folded = (count: number): string => `… ${count} more ${count === 1 ? "line" : "lines"}; /output shows them`

const textLines = (text: string): ReadonlyArray<string> => sanitize(text).replace(/\n+$/, "").split("\n")

/** The first and the last lines of a text. */
const fold = (lines: ReadonlyArray<string>): ReadonlyArray<string> =>
  lines.length <= headLines + lastLines + 1
    ? lines
    : [...lines.slice(0, headLines), folded(lines.length - headLines - lastLines), ...lines.slice(-lastLines)]

/** What stands below: the change that it made, or what a command said. */
export const toolDetails = (event: Completed): ReadonlyArray<Detail> => {
  const details = isJsonObject(event.details) ? event.details : {}
  const { change } = details
  if (isJsonObject(change) && typeof change.diff === "string" && change.diff !== "") {
    const lines = textLines(change.diff)
    const shown =
      lines.length <= diffLines ? lines : [...lines.slice(0, diffLines - 1), folded(lines.length - diffLines + 1)]
    return [{ diff: true, lines: shown }]
  }
  if (!("exitCode" in details)) return []
  const said = isJsonObject(event.structured_output) ? event.structured_output.output : null
  if (typeof said !== "string" || said.trim() === "") return []
  return [{ diff: false, lines: fold(textLines(said)) }]
}
