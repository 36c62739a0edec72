/**
 * The line that shows what a running turn does: spinner, tool, elapsed time, tokens. Pure.
 */
import { duration, tokens } from "./format.ts"
import type { View } from "./renderer.ts"
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
    if (first.output === "") return `${first.name} ${first.summary}${more}`
    return `${first.name} ${truncate(first.summary, shortSummary)}${more} · ${first.output}`
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
