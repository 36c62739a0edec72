/**
 * Why an actor ended. A watcher gets it in its `Down`, an asker in its `ActorDown`, a supervisor decides by it.
 */
import { Cause } from "effect"

export type StopReason =
  /** The actor ended its own work. */
  | { readonly _tag: "Normal" }
  /** Its parent, a supervisor or the system asked it to end. */
  | { readonly _tag: "Shutdown" }
  /** A handler, `init` or an escalating child failed. */
  | { readonly _tag: "Crashed"; readonly cause: Cause.Cause<unknown> }

export const normal: StopReason = { _tag: "Normal" }
export const shutdown: StopReason = { _tag: "Shutdown" }
export const crashed = (cause: Cause.Cause<unknown>): StopReason => ({ _tag: "Crashed", cause })

/** One line for people: `normal`, `shutdown` or `crashed: <message>`. */
export const describeReason = (reason: StopReason): string => {
  switch (reason._tag) {
    case "Normal":
      return "normal"
    case "Shutdown":
      return "shutdown"
    case "Crashed":
      return `crashed: ${describeCause(reason.cause)}`
  }
}

/** The first line of the most telling error of a cause. */
export const describeCause = (cause: Cause.Cause<unknown>): string => {
  if (Cause.isInterruptedOnly(cause)) return "interrupted"
  const error = Cause.squash(cause)
  const tag = typeof error === "object" && error !== null && "_tag" in error ? String(error._tag) : ""
  const text = error instanceof Error ? error.message || error.name : tag === "" ? String(error) : ""
  const line = text.split("\n", 1)[0] ?? ""
  return tag === "" || line.startsWith(tag) ? line : line === "" ? tag : `${tag}: ${line}`
}
