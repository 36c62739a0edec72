/**
 * Short words for durations, counts, times, tool arguments and parked runs.
 */
import type { Event } from "../../domain/event.ts"
import type { JsonObject } from "../../domain/json.ts"
import type { Usage } from "../../domain/usage.ts"
import { oneLine } from "./sanitize.ts"
import { truncate } from "./width.ts"

/** For example `80 ms`, `1.2 s`, `3 min 05 s`. */
export const duration = (ms: number): string => {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`
  if (ms < 60_000) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`
  const seconds = Math.floor(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`
}

/** For example `950`, `1.2k`, `3.4M`. */
export const count = (n: number): string => {
  if (n < 1000) return String(n)
  if (n < 999_950) return `${(n / 1000).toFixed(1)}k`
  return `${(n / 1_000_000).toFixed(1)}M`
}

export const tokens = (usage: Usage): string =>
  usage.input === 0 && usage.output === 0 ? "" : `${count(usage.input)} in, ${count(usage.output)} out`

/** US dollars, for example `$0.0123`, `$4.20`. */
export const cost = (dollars: number): string => `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`

/** For example `just now`, `5 min ago`, `3 h ago`, `2 d ago`. */
export const ago = (at: number, now: number): string => {
  const minutes = Math.floor((now - at) / 60_000)
  if (minutes < 1) return "just now"
  if (minutes < 60) return `${minutes} min ago`
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ago`
  return `${Math.floor(minutes / 1440)} d ago`
}

/** For example `the run is parked (restart_limit: …)`. */
export const parkedWords = (reason: string): string => `the run is parked (${oneLine(reason)})`

/** For example `compacted: 120.3k tokens are 18.2k now`. */
export const compactionWords = (
  ended: Pick<
    Extract<Event, { readonly type: "compaction_completed" }>,
    "status" | "tokens_before" | "tokens_after"
  > & {
    readonly error: string | null
  },
): string => {
  switch (ended.status) {
    case "completed":
      return `compacted: about ${count(ended.tokens_before)} tokens are ${count(ended.tokens_after ?? 0)} now`
    case "failed":
      return `the context could not be compacted: ${oneLine(ended.error ?? "")}`
    case "cancelled":
      return "the compaction was cancelled"
    case "declined":
      return "a plugin declined the compaction"
    case "nothing":
      return "there is nothing to compact"
    case "stale":
      return "the compaction came too late and was not used"
  }
}

/** The arguments that say most about a call, first. */
const telling = ["command", "path", "pattern", "glob", "url", "query"]

/** A call's arguments on one short line: the telling ones by value, else JSON. Never longer than `columns`. */
export const shortArguments = (args: JsonObject, columns: number): string => {
  const named = telling.flatMap((name) => {
    const value = args[name]
    return typeof value === "string" ? [oneLine(value)] : []
  })
  const rest = Object.keys(args).length === 0 ? "" : JSON.stringify(args)
  return truncate(named.length > 0 ? named.join(" ") : oneLine(rest), columns)
}
