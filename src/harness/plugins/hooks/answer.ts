/**
 * What a hook command's end means, as in the public format: exit code 0 with JSON or plain text, 2 to refuse, others to report. Pure.
 */
import { isJsonObject, isRecord, type JsonObject } from "../../../domain/json.ts"
import { nearest } from "../../../domain/nearest.ts"
import { counted } from "../../../tools/limits.ts"
import type { CommandHook } from "./config.ts"
import type { HookExit } from "./run.ts"

export interface HookAnswer {
  readonly decision: "allow" | "deny" | "ask" | null
  readonly reason: string | null
  /** Text for the model. */
  readonly context: string | null
  /** Other arguments for the call. */
  readonly input: JsonObject | null
  /** Why the hook has not answered, for people. A call that it should have judged is then blocked. */
  readonly failure: string | null
  /** What is told and changes nothing. */
  readonly warning: string | null
}

const silent: HookAnswer = { decision: null, reason: null, context: null, input: null, failure: null, warning: null }

const words: Readonly<Record<string, HookAnswer["decision"]>> = {
  allow: "allow",
  approve: "allow",
  deny: "deny",
  block: "deny",
  ask: "ask",
}

const asText = (value: unknown): string | null =>
  typeof value === "string" && value.trim() !== "" ? value.trim() : null

/** Exit codes of a shell that could not run a command. */
const notRun = new Set([126, 127])

/** Both ways in which the fields are written: at the top, and under `hookSpecificOutput`. */
const readAnswer = (value: Readonly<Record<string, unknown>>): HookAnswer => {
  const inner = isRecord(value.hookSpecificOutput) ? value.hookSpecificOutput : {}
  const said = inner.permissionDecision ?? inner.decision ?? value.decision
  const decision = typeof said === "string" ? words[said] : undefined
  if (said !== undefined && said !== null && decision === undefined) {
    const near = typeof said === "string" ? ` (the nearest is "${nearest(said, Object.keys(words))}")` : ""
    const failure = `decision: expected allow, deny or ask${near}, got ${JSON.stringify(said)}`
    return { ...silent, failure }
  }
  const stops = value.continue === false
  const { updatedInput } = inner
  return {
    decision: stops ? "deny" : (decision ?? null),
    reason:
      asText(inner.permissionDecisionReason) ??
      asText(inner.reason) ??
      asText(value.reason) ??
      (stops ? asText(value.stopReason) : null),
    context: asText(inner.additionalContext) ?? asText(value.additionalContext),
    input: isJsonObject(updatedInput) ? updatedInput : null,
    failure: null,
    warning: asText(value.systemMessage),
  }
}

/** Plain text counts as context where `textIsContext`. */
export const answerOf = (hook: CommandHook, exit: HookExit, textIsContext: boolean): HookAnswer => {
  const failed = (why: string): HookAnswer => ({ ...silent, failure: why })
  if (exit.type === "timedOut") return failed("it did not end in time")
  if (exit.type === "notStarted") return failed(`it could not be started: ${exit.reason}`)
  const { code, stderr, stdout, truncated } = exit
  if (code === null) return failed("a signal ended it")
  if (code === 2) return { ...silent, decision: "deny", reason: asText(stderr) ?? `refused by ${hook.command}` }
  if (notRun.has(code))
    return failed(`its command could not be run (exit code ${code}): ${asText(stderr) ?? "no message"}`)
  if (code !== 0) return { ...silent, warning: `exit code ${code}: ${asText(stderr)?.slice(0, 500) ?? "no message"}` }
  const text = stdout.trim()
  if (!text.startsWith("{")) return { ...silent, context: textIsContext && text !== "" ? text : null }
  if (truncated) return failed(`its answer is longer than the ${counted(stdout.length, "character")} that are read`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return failed("its answer begins with { and is not JSON")
  }
  return isRecord(value) ? readAnswer(value) : silent
}

/** The strictest of several answers: deny before ask before allow. */
export const strictest = (answers: ReadonlyArray<HookAnswer>): HookAnswer["decision"] => {
  for (const decision of ["deny", "ask", "allow"] as const) {
    if (answers.some((answer) => answer.decision === decision)) return decision
  }
  return null
}
