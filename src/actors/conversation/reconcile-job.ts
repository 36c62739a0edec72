/**
 * The job that finds out what became of a call that was cut off. It has nothing to say beyond the tool's answer: a failure, and no answer in
 * time, are the answer `unknown`; a defect crashes the job, which the conversation takes for the same.
 */
import { Duration, Effect } from "effect"
import { traced } from "../../domain/traced.ts"
import { type Reconciliation, reconcileMs } from "../../tools/tool.ts"
import type { ToolsService } from "../../tools/tools.ts"
import { callContext, type Place } from "./call-context.ts"
import type { Send } from "./jobs.ts"
import type { CallSlot } from "./machine/data.ts"

export const reconcileJob = (options: {
  readonly slot: CallSlot
  readonly place: Place
  readonly tools: ToolsService
  readonly send: Send
}): Effect.Effect<void> => {
  const { place, send, slot, tools } = options
  const { call, task } = slot
  const unknown = (reason: string): Reconciliation => ({ unknown: true, reason })
  const ask = tools.get(call.name)?.reconcile?.(
    slot.args,
    callContext(slot, place, () => Effect.void, send),
  )
  const found: Effect.Effect<Reconciliation> =
    ask === undefined
      ? Effect.succeed(unknown(`The tool "${call.name}" can no longer find out.`))
      : ask.pipe(
          Effect.catchAll((failure) => Effect.succeed(unknown(`Finding out failed: ${failure.message}`))),
          Effect.timeoutTo({
            duration: Duration.millis(reconcileMs),
            onSuccess: (answer) => answer,
            onTimeout: () => unknown(`Finding out took longer than ${reconcileMs / 1000} s.`),
          }),
        )
  return Effect.flatMap(found, (answer) => send({ type: "reconciled", task: task.id, found: answer })).pipe(
    traced("super_pi.reconcile", { "gen_ai.tool.name": call.name, "gen_ai.tool.call.id": call.id }),
  )
}
