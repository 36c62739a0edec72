/**
 * The lines between the output and the input: what a running turn does (spinner, tool, elapsed time, tokens), what a running call said last,
 * and where the conversation stands. Pure.
 */
import { cost, duration, tokens } from "./format.ts"
import type { View } from "./renderer.ts"
import { oneLine } from "./sanitize.ts"
import { truncate } from "./width.ts"

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]

/** Milliseconds between two frames. */
export const frameMs = 100

/** Columns of a call's arguments beside its output. */
const shortSummary = 24

const words: Readonly<Record<View["state"], string>> = {
  recovering: "recovering",
  idle: "idle",
  preparing_request: "preparing",
  streaming_llm: "thinking",
  executing_tools: "working",
  awaiting_children: "waiting",
  sleeping_backoff: "waiting to try again",
  compacting: "compacting",
  settling_run: "finishing",
}

const doing = (view: View): string => {
  const running = [...view.tools.values()]
  const first = running[0]
  if (first !== undefined) {
    const more = running.length > 1 ? ` and ${running.length - 1} more` : ""
    // Where there is output, it says more than the rest of the arguments.
    const newest = first.tail.at(-1) ?? ""
    if (newest === "") return `${first.name} ${first.summary}${more}`
    return `${first.name} ${truncate(first.summary, shortSummary)}${more} · ${newest}`
  }
  if (view.writingCall !== null) return `writing a call of ${view.writingCall}`
  if (view.state === "streaming_llm" && view.running === "text") return "answering"
  return view.retry ?? words[view.state]
}

/** The line at `now` (milliseconds of the events' clock), at most `columns - 1` wide; null when nothing runs. */
export const statusLine = (view: View, now: number, columns: number): string | null => {
  if (view.startedAt === null) return null
  const elapsed = Math.max(0, now - view.startedAt)
  const frame = frames[Math.floor(elapsed / frameMs) % frames.length] ?? ""
  const tail = [duration(elapsed), tokens(view.usage)].filter((part) => part !== "").join(" · ")
  const room = Math.max(10, columns - 1) - tail.length - 5
  const what = room < 8 ? "" : ` ${truncate(doing(view), room)} ·`
  return truncate(`${frame}${what} ${tail}`, Math.max(10, columns - 1))
}

/** The newest lines that the first running call said, each at most `columns - 1` wide; none while it says at most one. */
export const tailLines = (view: View, columns: number): ReadonlyArray<string> => {
  const [first] = view.tools.values()
  if (first === undefined || first.tail.length < 2) return []
  return first.tail.map((one) => truncate(`  │ ${one}`, Math.max(10, columns - 1)))
}

/** What a view does not know. */
export interface Standing {
  /** Of conversations that name none; null where it is not known. */
  readonly defaultModel: string | null
  /** US dollars of the conversation so far; null where its models have no price. */
  readonly cost: number | null
}

/** Where the conversation stands, at most `columns - 1` wide; null before its first event. */
export const standingLine = (view: View, { cost: spent, defaultModel }: Standing, columns: number): string | null => {
  if (view.conversation === null) return null
  const queued = view.queued.size
  const facts = [
    `conversation ${view.conversation}`,
    oneLine(view.model) || (defaultModel ?? "the default model"),
    oneLine(view.mode),
    words[view.state],
    tokens(view.usage),
    spent === null ? "" : cost(spent),
    queued === 0 ? "" : `${queued} queued`,
  ]
  return truncate(facts.filter((fact) => fact !== "").join(" · "), Math.max(10, columns - 1))
}
