/**
 * `super-pi why CALL`: which plugin decided what about a tool call. Reads the database, also while another process owns it.
 */
import { Effect } from "effect"
import { callOf } from "../domain/effect.ts"
import type { CallDecisions } from "../domain/harness-view.ts"
import { ConversationId, TaskId } from "../domain/ids.ts"
import { decisionsOf } from "../harness/trail.ts"
import { oneLine } from "../protocols/terminal/sanitize.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import { openReader } from "./node.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"

/** Conversations that are searched for a call's id, newest first. */
const searched = 20

/** As it reads. Pure. */
export const whyLines = (found: CallDecisions): Array<string> => {
  const task = found.task_id === null ? "" : `, task ${found.task_id}`
  const steps = found.trail.map(({ at, decision, hook, ms, plugin, reason, rule }) => {
    const why = [rule === null ? "" : `rule ${rule}`, reason ?? ""].filter((part) => part !== "").join(": ")
    const when = new Date(at).toISOString().slice(11, 23)
    const cells = [when, plugin, hook, decision, ...(why === "" ? [] : [why]), `(${ms} ms)`]
    return `  ${cells.map(oneLine).join("  ")}`
  })
  return [
    oneLine(`call ${found.call_id} of ${found.tool} in conversation ${found.conversation_id}${task}: ${found.outcome}`),
    `  ${oneLine(`arguments ${JSON.stringify(found.arguments)}`)}`,
    ...(found.reason === null ? [] : [`  ${oneLine(found.reason)}`]),
    ...(steps.length === 0 ? ["  no plugin said anything about it"] : steps),
  ]
}

export const main = (invocation: Invocation): Promise<number> => {
  const call = invocation.words[0] ?? ""
  const named = invocation.get(option.conversation)
  return runCommand(() =>
    Effect.gen(function* () {
      const store = yield* openReader(pathsOf(invocation))
      const missing = new CommandFailure(
        `call ${call} was not found; a call has an id or a task number (see: super-pi session show)`,
      )
      if (store === null) return yield* Effect.fail(missing)
      const id = /^\d{1,15}$/.test(call) ? Number(call) : 0
      const row = id < 1 ? null : yield* store.task(TaskId.make(id))
      const task = row !== null && callOf(row) !== null ? row : null
      const callId = task === null ? call : (callOf(task)?.callId ?? call)
      const recent = yield* store.conversations({ principal: "local", limit: searched })
      const places =
        task?.conversation != null
          ? [task.conversation]
          : named !== undefined
            ? [ConversationId.make(named)]
            : recent.map(({ conversation }) => conversation.id)
      for (const place of places) {
        const found = decisionsOf(place, yield* store.visibleEntries(place), callId, task)
        if (found === null) continue
        const lines = invocation.get(option.json) === true ? [JSON.stringify(found)] : whyLines(found)
        for (const line of lines) process.stdout.write(`${line}\n`)
        return ExitCode.ok
      }
      return yield* Effect.fail(missing)
    }),
  )
}
