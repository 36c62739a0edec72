/**
 * Subagents: child conversations that a conversation hands tasks to. What is asked for (a delegation), what its `pi.subagent` tasks hold, what
 * a child runs with, and how its end reads. A child never has more permission than its parent. Pure.
 */
import { Schema } from "effect"
import type { AgentDocument, ExecutionMode } from "./document.ts"
import { ConversationId, SubmissionId } from "./ids.ts"
import { SubagentRole } from "./subagent-role.ts"
import { Usage } from "./usage.ts"

/** When the parent goes on: when every child has ended; `fail_fast` also stops the others at the first failure. */
export const SubagentPolicy = Schema.Literal("all", "fail_fast")
export type SubagentPolicy = typeof SubagentPolicy.Type

/** What one child is to do. */
export interface SubagentOrder {
  readonly role: SubagentRole
  readonly task: string
  /** What it has to know beside the task. */
  readonly context: string | null
}

/** Directive of a tool result: start these children, go on when they have ended. */
export interface Delegation {
  readonly orders: ReadonlyArray<SubagentOrder>
  readonly policy: SubagentPolicy
  /** Milliseconds that a child may take, from the start of its job. */
  readonly timeoutMs: number
  /** How deep subagents may be below a person's conversation: at 1 a child has none of its own. */
  readonly maxDepth: number
}

/** Input of a `pi.subagent` task: the intent. */
export const SubagentInput = Schema.Struct({
  role: SubagentRole,
  task: Schema.String,
  /** The call that asked for it. */
  callId: Schema.String,
  /** The child, and the submission in it that is to be answered. */
  conversation: ConversationId,
  submission: SubmissionId,
  timeoutMs: Schema.Int.pipe(Schema.positive()),
})
export type SubagentInput = typeof SubagentInput.Type

/** Which job works on it: raised whenever a new one is queued, so that an older one finds that it has nothing to do. */
export const SubagentCheckpoint = Schema.Struct({ job: Schema.Int.pipe(Schema.positive()) })
export type SubagentCheckpoint = typeof SubagentCheckpoint.Type

export const SubagentStatus = Schema.Literal("completed", "failed", "timed_out", "stopped")
export type SubagentStatus = typeof SubagentStatus.Type

/** How a child ended. `text` is its final text, or why there is none. */
export const SubagentEnd = Schema.Struct({
  status: SubagentStatus,
  text: Schema.String,
  /** Tokens of the child and of its own subagents, per `provider/model`. */
  models: Schema.Record({ key: Schema.String, value: Usage }),
  turns: Schema.NonNegativeInt,
})
export type SubagentEnd = typeof SubagentEnd.Type

/** Bytes of a child's final text that its parent reads. */
export const summaryBytes = 8_000

/** The beginning of a text that fits into so many bytes of UTF-8, no character cut. */
const fitting = (text: string, bytes: number): string => {
  if (text.length * 3 <= bytes) return text
  const encoded = new TextEncoder().encode(text)
  if (encoded.length <= bytes) return text
  let end = bytes
  // A continuation byte at the cut: the character began before it.
  while (end > 0 && ((encoded[end] ?? 0) & 0xc0) === 0x80) end--
  return new TextDecoder().decode(encoded.subarray(0, end))
}

const verbs: Readonly<Record<SubagentStatus, string>> = {
  completed: "finished",
  failed: "failed",
  timed_out: "ran out of time",
  stopped: "was stopped",
}

/** What the parent's model reads when a child has ended. */
export const summaryOf = ({ conversation, role }: SubagentInput, { status, text }: SubagentEnd): string => {
  const said = text.trim()
  const kept = fitting(said, summaryBytes)
  const cut = kept.length === said.length ? "" : `\n[cut; conversation ${conversation} has the rest]`
  return `Subagent ${role} (conversation ${conversation}) ${verbs[status]}: ${kept === "" ? "(no text)" : kept}${cut}`
}

/** What a child is told first. */
export const promptOf = ({ context, task }: SubagentOrder): string =>
  context === null || context.trim() === "" ? task : `${task}\n\nContext:\n${context}`

const instructionsOf: Readonly<Record<SubagentRole, string>> = {
  scout:
    "You are a scout: find out what was asked for, read-only. Report what you found with paths and lines, and what you could not find.",
  planner:
    "You are a planner: read what the plan depends on, change nothing. Answer with numbered steps that somebody else can carry out.",
  reviewer:
    "You are a reviewer: judge what was asked for, read-only. Report findings by weight, each with where it is and why it matters.",
  researcher:
    "You are a researcher: gather and compare what is known, read-only. Report findings with their sources, and say what is uncertain.",
  worker: "You are a worker: carry out the task, show that it works, and report what you changed.",
}

const common =
  "You work for another agent, which reads only your final message: say there all that it needs, in at most 8,000 bytes. Nobody can answer questions."

/** Roles that only read, whatever their parent may do. */
export const isReadOnly = (role: SubagentRole): boolean => role !== "worker"

const rank: Readonly<Record<ExecutionMode, number>> = { plan: 0, "accept-edits": 1, auto: 2 }

/** The stricter of two modes. */
export const stricter = (a: ExecutionMode, b: ExecutionMode): ExecutionMode => (rank[a] <= rank[b] ? a : b)

/** The mode lowered to the ceiling of a subagent's conversation. */
export const belowCeiling = (agent: Pick<AgentDocument, "subagent">, mode: ExecutionMode): ExecutionMode => {
  const ceiling = agent.subagent?.maxMode
  return ceiling === undefined ? mode : stricter(mode, ceiling)
}

/** The choices after a change. A subagent stays what it is, and its mode stays below its ceiling. */
export const changedAgent = (before: AgentDocument, change: AgentDocument): AgentDocument => {
  const { subagent } = before
  if (subagent === undefined) return { ...before, ...change }
  const { mode } = change
  return { ...before, ...change, subagent, ...(mode === undefined ? {} : { mode: belowCeiling(before, mode) }) }
}

/** How deep a conversation is: 0 for a person's own. */
export const depthOf = (agent: Pick<AgentDocument, "subagent">): number => agent.subagent?.depth ?? 0

/**
 * What a child runs with: what its parent does (the budget is that at the top of the tree), with the mode and the ceiling of its role. `parent` is the parent's conversation, the root of
 * the tree where it is no subagent itself.
 */
export const childAgent = (
  { budget: _budget, questions: _questions, outputSchema: _schema, ...agent }: AgentDocument,
  role: SubagentRole,
  parent: ConversationId,
): AgentDocument => {
  const above = agent.subagent
  const wanted: ExecutionMode | undefined = isReadOnly(role) ? "plan" : (agent.mode ?? above?.maxMode)
  const ceiling =
    wanted === undefined ? above?.maxMode : above?.maxMode === undefined ? wanted : stricter(wanted, above.maxMode)
  const given = agent.instructions?.trim() ?? ""
  const subagent = { role, depth: depthOf(agent) + 1, root: above?.root ?? parent }
  return {
    ...agent,
    ...(ceiling === undefined ? {} : { mode: ceiling }),
    instructions: [`${instructionsOf[role]} ${common}`, ...(given === "" ? [] : [given])].join("\n\n"),
    subagent: ceiling === undefined ? subagent : { ...subagent, maxMode: ceiling },
  }
}

/** Directive of a tool result: store a conversation that somebody may go on with. Nothing runs in it. */
export interface HandoffOrder {
  readonly title: string
  readonly summary: string
  readonly goal: string
}

/** What the stored conversation begins with. */
export const handoffText = ({ goal, summary }: HandoffOrder, from: ConversationId): string =>
  `This conversation goes on from conversation ${from}.\n\nSummary:\n${summary.trim()}\n\nGoal:\n${goal.trim()}`

/** What a conversation runs with that was handed something: the choices of the one before, but not its place among subagents. */
export const handoffAgent = ({ outputSchema: _schema, subagent, ...agent }: AgentDocument): AgentDocument =>
  subagent?.maxMode === undefined
    ? agent
    : { ...agent, mode: stricter(agent.mode ?? subagent.maxMode, subagent.maxMode) }
