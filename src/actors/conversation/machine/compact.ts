/**
 * How compactions start. Each is a task of its own beside the run; its intent is committed before a model is asked. Legal lives: made →
 * `running` (⇄ `sleeping` before a retry) → ready → placed at a turn boundary, or stale, failed, cancelled (`compaction-end.ts`). A run waits
 * for one in the state `compacting` only; everything else goes on meanwhile. Rules are in `docs/compaction.md`.
 */
import { planCompaction } from "../../../domain/compaction.ts"
import {
  type CompactionLimits,
  type CompactionReason,
  type CompactionRules,
  limitsFor,
  rulesFor,
} from "../../../domain/compaction-settings.ts"
import type { CompactionInput, CompactionResult } from "../../../domain/compaction-task.ts"
import { TaskKind } from "../../../domain/task.ts"
import { contextTokens } from "../../../domain/token-estimate.ts"
import { checkpointOf, setCompaction, showCompactions } from "./compaction-set.ts"
import type { Compaction, Decision, MachineEvent } from "./data.ts"
import type { Draft } from "./draft.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** An automatic compaction that would gain less than this part of the context is not worth a request. */
const leastGain = 0.05

/** Compactions that one request waits for at most; then it is sent as it is, and the service decides. */
const waitsAtMost = 2

/** What a conversation is compacted for. */
export interface Target {
  /** `provider/model`, "" where it is not known. */
  readonly model: string
  /** Tokens of its context window, null where nobody knows. */
  readonly window: number | null
}

/** How much stays, and when stubs alone are enough, by the reason. */
const planFor = (d: Draft, reason: CompactionReason, rules: CompactionRules, limits: CompactionLimits) => {
  const { context } = d.data
  const tokens = contextTokens(context)
  const automatic = reason === "threshold" || reason === "background"
  // What a person asks for, and what a service found too long, becomes short whatever the limits say.
  const part = reason === "overflow" ? 4 : 2
  return planCompaction(context, {
    mode: rules.mode,
    keep: automatic ? limits.keep : Math.min(limits.keep, Math.floor(tokens / part)),
    most: automatic ? limits.most : Math.min(limits.most, Math.floor(tokens / part)),
    target: automatic ? limits.target : null,
    leastGain: automatic ? leastGain : 0,
  })
}

/** Plans a compaction and starts it; null when there is nothing to compact. */
const begin = (
  d: Draft,
  reason: CompactionReason,
  { model, window }: Target,
  instructions: string | null = null,
  replies: Compaction["replies"] = [],
): Compaction | null => {
  const rules = rulesFor(d.env.policy.compaction, model)
  const plan = planFor(d, reason, rules, limitsFor(rules, window))
  if (plan === null) return null
  const writer = rules.model ?? model
  const input: CompactionInput = { reason, instructions, mode: rules.mode, model, writer, plan }
  const row = d.newTask(TaskKind.compaction, { ...input }, checkpointOf({ phase: "summarise", attempt: 1 }), null)
  const task = reason === "background" ? d.putTask({ ...row, background: true }) : row
  const compaction: Compaction = { task, input, attempt: 1, retry: null, ready: null, cancelling: false, replies }
  d.patch({ compactions: [...d.data.compactions, compaction] })
  d.publish({ type: "compaction_started", task_id: task.id, reason, mode: rules.mode })
  showCompactions(d)
  d.act({ type: "compact", compaction })
  return compaction
}

/** A person asks for a compaction. The reply waits for its end; the same request while one is made joins it. */
export const compact = (d: Draft, event: EventOf<"compact">): Decision => {
  const { instructions, reply, target } = event
  const same = d.data.compactions.find(
    (one) => one.input.reason === "manual" && one.input.instructions === instructions && !one.cancelling,
  )
  if (same !== undefined) {
    setCompaction(d, { ...same, replies: [...same.replies, reply] })
    return d.done()
  }
  if (begin(d, "manual", target, instructions, [reply]) === null) {
    const tokens = contextTokens(d.data.context)
    const nothing: CompactionResult = {
      status: "nothing",
      task_id: null,
      entry_id: null,
      tokens_before: tokens,
      tokens_after: null,
    }
    d.succeed(reply, nothing)
  }
  return d.done()
}

/** Whether the next request has to wait for it. */
const blocks = ({ cancelling, input, ready }: Compaction): boolean =>
  (input.reason === "threshold" || input.reason === "overflow") && ready === null && !cancelling

/** The run waits for a compaction; the request that was about to be made is made anew afterwards. */
const wait = (d: Draft, { input, task }: Compaction): void => {
  const run = d.run
  const generation = d.putTask({
    ...run.generation,
    status: "waiting",
    waitingOn: { on: [task.id], policy: "allSettled" },
    crashes: 0,
  })
  d.patchRun({ generation, token: run.token + 1, waits: run.waits + 1 })
  if (input.reason === "background") d.act({ type: "hurryCompaction", task: task.id })
  d.to("compacting")
}

/** Starts one beside the work where the context has come near to its limit. */
export const compactBeside = (d: Draft, target: Target): void => {
  const rules = rulesFor(d.env.policy.compaction, target.model)
  const { backgroundAt } = limitsFor(rules, target.window)
  if (!rules.enabled || backgroundAt === null || d.data.compactions.length > 0) return
  // While they fail, only what cannot wait tries again.
  if (d.data.compactionFailure !== null || contextTokens(d.data.context) <= backgroundAt) return
  begin(d, "background", target)
}

/** Before a request: true when it has to wait for a compaction. */
export const holdRequest = (d: Draft, target: Target): boolean => {
  const underway = d.data.compactions.find(blocks)
  if (underway !== undefined) {
    wait(d, underway)
    return true
  }
  const rules = rulesFor(d.env.policy.compaction, target.model)
  if (!rules.enabled) return false
  if (contextTokens(d.data.context) <= limitsFor(rules, target.window).blockAt) {
    compactBeside(d, target)
    return false
  }
  if (d.run.waits >= waitsAtMost) return false
  const one = d.data.compactions.find((other) => !other.cancelling) ?? begin(d, "threshold", target)
  if (one === null) return false
  wait(d, one)
  return true
}

/** The service said that the context is too long: true when the request waits for a compaction, once per turn. */
export const compactOverflow = (d: Draft, target: Target): boolean => {
  if (d.run.overflowed || !rulesFor(d.env.policy.compaction, target.model).enabled) return false
  const one = d.data.compactions.find((other) => !other.cancelling) ?? begin(d, "overflow", target)
  if (one === null) return false
  d.patchRun({ overflowed: true })
  wait(d, one)
  return true
}
