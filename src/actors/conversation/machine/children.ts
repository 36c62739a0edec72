/**
 * What a result asks of other conversations: subagents that the run waits for, and a conversation that is stored for somebody to go on with.
 * All of it is in the commit of the result: the children with what they are to do, their tasks, one job each, and the waiting generation.
 * Life of a subagent's task, each step a commit of this conversation, its one writer: `pending` (its job is queued) → `running` (the job
 * began) → terminal. How they end is in `children-end.ts`; rules are in `docs/subagents.md`.
 */
import { DocumentKind } from "../../../domain/document.ts"
import { EntryKind } from "../../../domain/entry.ts"
import type { ConversationId, TaskId } from "../../../domain/ids.ts"
import { QueueName } from "../../../domain/job.ts"
import type { Json } from "../../../domain/json.ts"
import { text } from "../../../domain/message.ts"
import {
  childAgent,
  type Delegation,
  depthOf,
  type HandoffOrder,
  handoffAgent,
  handoffText,
  promptOf,
  type SubagentCheckpoint,
  type SubagentInput,
  type SubagentOrder,
} from "../../../domain/subagent.ts"
import { TaskKind } from "../../../domain/task.ts"
import { uuidv7 } from "../../../domain/uuid.ts"
import { builtinWrite } from "../../../storage/documents/builtin.ts"
import type { ToolResult } from "../../../tools/tool.ts"
import type { CallSlot, Child, Decision, MachineEvent } from "./data.ts"
import { type Draft, type DraftJob, queuedSubmission } from "./draft.ts"

type EventOf<Type extends MachineEvent["type"]> = Extract<MachineEvent, { readonly type: Type }>

/** Name of the worker in the queue `subagents`. */
export const subagentWorkerName = "run"

/** Characters of a task that title its conversation. */
const titleLength = 80

/** How often a parent looks whether a child ended without word, in ms. */
const pollMs = 5_000

export const checkpointOf = (job: number): Json => ({ job }) satisfies SubagentCheckpoint

/** The job of a subagent. A lost one is not tried again by its queue: the parent finds that it is lost. */
export const subagentJob = (d: Draft, task: TaskId, job: number): DraftJob => ({
  queue: QueueName.subagents,
  worker: subagentWorkerName,
  args: { task, job },
  uniqueKey: jobKeyOf(task, job),
  uniqueFor: "live",
  maxAttempts: 1,
  runAt: d.env.now,
})

export const jobKeyOf = (task: TaskId, job: number): string => `${task}/${job}`

const refused = (why: string): ToolResult => ({ output: [text(why)], isError: true })

/** The result as it is committed: one that starts subagents or stores a conversation says which, or why not. */
export const settleResult = (d: Draft, slot: CallSlot, result: ToolResult): ToolResult => {
  const { control } = result
  if (control === undefined || result.isError === true) return result
  if (control.await !== undefined) return { ...result, ...delegate(d, slot, control.await) }
  return control.store === undefined ? result : { ...result, ...handOff(d, control.store) }
}

const delegate = (d: Draft, slot: CallSlot, delegation: Delegation): ToolResult => {
  const { maxDepth, orders, policy, timeoutMs } = delegation
  const { run } = d
  const depth = depthOf(d.data.agent)
  if (run.cancelling) return refused("The run was cancelled before the subagents started.")
  if (depth >= maxDepth) {
    return refused(
      `Not started: this conversation is itself a subagent (depth ${depth} of at most ${maxDepth}), and those have none of their own. Do the task yourself.`,
    )
  }
  if (run.children.length > 0) {
    return refused(
      "Not started: subagents are at work already, and there is one delegation at a time. Put all tasks into one call (`tasks`), or wait for the summaries and call again.",
    )
  }
  if (orders.length === 0) return refused("tasks: expected at least one task, got none")
  const children = orders.map((order) => begin(d, slot, order, timeoutMs))
  const waitingOn = {
    on: children.map(({ task }) => task.id),
    policy: policy === "fail_fast" ? ("failFast" as const) : ("allSettled" as const),
  }
  d.patchRun({ children, generation: d.putTask({ ...run.generation, waitingOn }) })
  const started = children.map(({ input, task }) => ({
    task: task.id,
    conversation: input.conversation,
    role: input.role,
  }))
  const names = started.map(({ conversation, role }) => `${role} (conversation ${conversation})`).join(", ")
  const facts: Json = { subagents: started }
  return {
    output: [text(`Started ${names}. Their summaries arrive as messages when they have ended.`)],
    structuredOutput: facts,
    details: facts,
  }
}

/** One child: its conversation with what it is to do, its task and its job. */
const begin = (d: Draft, slot: CallSlot, order: SubagentOrder, timeoutMs: number): Child => {
  const { role, task: wanted } = order
  const conversation = d.env.ids.conversation()
  const submission = d.env.ids.submission()
  const input: SubagentInput = { role, task: wanted, callId: slot.call.id, conversation, submission, timeoutMs }
  const task = d.newTask(TaskKind.subagent, { ...input }, checkpointOf(1), d.run.generation.id, false)
  const agent = childAgent(d.data.agent, role, d.data.conversation.id)
  addConversation(
    d,
    { id: conversation, owner: task.id, title: titleOf(`${role}: ${wanted}`), agent },
    null,
    queuedSubmission({
      id: submission,
      conversation,
      kind: "input",
      content: {
        content: [{ type: "text", text: promptOf(order) }],
        ...(d.env.trace === undefined ? {} : { trace: d.env.trace }),
      },
      whenBusy: "followUp",
      requestId: null,
      createdAt: d.env.now,
    }),
  )
  d.addJob(subagentJob(d, task.id, 1))
  return { task, input, job: 1 }
}

const titleOf = (line: string): string => (line.trim().split("\n", 1)[0] ?? "").slice(0, titleLength)

const handOff = (d: Draft, order: HandoffOrder): ToolResult => {
  const id = d.env.ids.conversation()
  const from = d.data.conversation.id
  const { goal, summary } = order
  const entry = {
    id: d.env.ids.entry(),
    conversation: id,
    kind: EntryKind.handoff,
    model: [{ role: "user" as const, content: [text(handoffText(order, from))] }],
    data: { from, goal, summary },
    head: null,
    edits: [],
    task: null,
    createdAt: d.env.now,
  }
  addConversation(d, { id, owner: null, title: titleOf(order.title), agent: handoffAgent(d.data.agent) }, entry, null)
  const facts: Json = { conversation: id }
  return {
    output: [
      text(`Stored as conversation ${id}; nothing runs in it. A person goes on with: super-pi chat --session ${id}`),
    ],
    structuredOutput: facts,
    details: facts,
  }
}

type Born = Parameters<Draft["addConversation"]>[0]

const addConversation = (
  d: Draft,
  of: {
    readonly id: ConversationId
    readonly owner: TaskId | null
    readonly title: string
    readonly agent: Draft["data"]["agent"]
  },
  entry: Born["entry"],
  submission: Born["submission"],
): void => {
  const { now, random } = d.env
  const { principal } = d.data.conversation
  const { agent, id, owner, title } = of
  const sessionId = uuidv7(now, random)
  d.addConversation({
    row: { id, parent: null, owner, principal, title, createdAt: now, updatedAt: now },
    documents: [
      builtinWrite(DocumentKind.agent, d.env.ids.document(), id, { ...agent } as Json),
      builtinWrite(DocumentKind.provider, d.env.ids.document(), id, { sessionId }),
    ],
    submission,
    entry,
  })
}

/** Waits for the subagents of the turn. */
export const park = (d: Draft): void => {
  d.to("awaiting_children")
  watch(d)
}

/** Sets the timer that covers a lost wake-up. */
const watch = (d: Draft): void => d.act({ type: "timer", timer: "children", ms: d.env.policy.awaitPollMs ?? pollMs })

/** The timer: looks after what runs, and cancels again what should have been stopped. */
export const checkChildren = (d: Draft): Decision => {
  const children = d.data.run?.children ?? []
  if (d.data.state !== "awaiting_children" || children.length === 0) return d.done()
  const stopping = children.filter(({ task }) => task.abortRequested)
  const running = children.filter(({ task }) => !task.abortRequested)
  if (stopping.length > 0) d.act({ type: "stopChildren", children: stopping })
  if (running.length > 0) d.act({ type: "checkChildren", children: running })
  watch(d)
  return d.done()
}

/** Asks what runs of the subagents to stop; each ends with its own event. True when there are any. */
export const stopChildren = (d: Draft): boolean => {
  const { children } = d.run
  if (children.length === 0) return false
  const marked = children.map((child) =>
    child.task.abortRequested ? child : { ...child, task: d.putTask({ ...child.task, abortRequested: true }) },
  )
  d.patchRun({ children: marked })
  d.act({ type: "stopChildren", children: marked })
  return true
}

/** The job of a subagent began, or goes on after it gave its place to the jobs of the subagent's own subagents. */
export const childBegun = (d: Draft, { job, reply, task }: EventOf<"childBegun">): Decision => {
  const child = d.data.run?.children.find((one) => one.task.id === task)
  if (child === undefined || child.job !== job || child.task.abortRequested) {
    d.succeed(reply, null)
    return d.done()
  }
  const { input } = child
  const { fence, node, now } = d.env
  if (child.task.status === "pending") {
    const row = d.putTask({ ...child.task, status: "running", node, fence, startedAt: now })
    d.patchRun({ children: d.run.children.map((one) => (one === child ? { ...child, task: row } : one)) })
    const { callId, conversation, role } = input
    d.publish({
      type: "subagent_started",
      task_id: task,
      call_id: callId,
      subagent_id: conversation,
      role,
      task: input.task,
    })
  }
  const startedAt = child.task.status === "pending" ? now : (child.task.startedAt ?? now)
  d.succeed(reply, { input, leftMs: startedAt + input.timeoutMs - now })
  return d.done()
}
