/**
 * The committed state of a conversation as watchers and callers see it. Pure.
 */
import type { SessionState } from "../../domain/event.ts"
import { questionView } from "../../domain/question.ts"
import { liveCompactions } from "./machine/compaction-view.ts"
import type { Data, Run } from "./machine/data.ts"
import { sumUsage } from "./machine/run.ts"
import type { ConversationSettingsService } from "./settings.ts"

/** What a conversation follows where it chose nothing. */
export interface Defaults {
  readonly settings: ConversationSettingsService
  readonly defaultModel: string
}

const subagentsOf = ({ children }: Run): NonNullable<SessionState["subagents"]> =>
  children.map(({ input, task }) => ({
    task_id: task.id,
    subagent_id: input.conversation,
    role: input.role,
    running: task.status === "running",
  }))

export type Choices = Pick<SessionState, "model" | "mode" | "effort" | "structured" | "harness" | "cwd" | "title">

export const sameChoices = (a: Choices, b: Choices): boolean =>
  a.model === b.model &&
  a.mode === b.mode &&
  a.effort === b.effort &&
  a.structured === b.structured &&
  a.harness === b.harness &&
  a.cwd === b.cwd &&
  a.title === b.title

/** What it is called, and what it runs with: what `session_changed` tells. */
export const choicesOf = (
  { agent, conversation, run }: Pick<Data, "agent" | "conversation" | "run">,
  { defaultModel, settings }: Defaults,
): Choices => ({
  model: run?.model !== undefined && run.model !== "" ? run.model : (agent.model ?? defaultModel),
  mode: agent.mode ?? settings.defaultMode,
  harness: agent.harness ?? null,
  cwd: agent.cwd ?? settings.defaultCwd,
  title: conversation.title,
  ...(agent.effort === undefined ? {} : { effort: agent.effort }),
  ...(agent.outputSchema === undefined || agent.outputSchema === null ? {} : { structured: true as const }),
})

/** `seq_no` is the newest event's number. */
export const viewOf = (data: Data, defaults: Defaults, seqNo: number): SessionState => {
  const { parked, run } = data
  return {
    conversation_id: data.conversation.id,
    state: data.state,
    ...choicesOf(data, defaults),
    turn_id: run?.generation.id ?? parked?.generation.id ?? null,
    partial: run !== null && (run.partial.text !== "" || run.partial.thinking !== "") ? run.partial : null,
    tools: (run?.calls ?? [])
      .filter((slot) => slot.status === "running")
      .map((slot) => ({
        task_id: slot.task.id,
        call_id: slot.call.id,
        name: slot.call.name,
        arguments: slot.call.arguments,
        output: slot.output,
      })),
    queued: data.queue.map((row) => row.id),
    retry: run?.retry ?? null,
    parked: parked === null ? null : { reason: parked.reason, crashes: parked.generation.crashes },
    compactions: liveCompactions(data).compactions,
    compaction_failure: data.compactionFailure,
    questions: data.questions.map(({ input, task }) => questionView(task.id, input)),
    ...(run === null || run.children.length === 0 ? {} : { subagents: subagentsOf(run) }),
    ...(data.plan === undefined ? {} : { plan: data.plan }),
    usage: sumUsage(data.usage.models),
    entries: data.entryCount,
    seq_no: seqNo,
  }
}
