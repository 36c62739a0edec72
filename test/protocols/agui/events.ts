/**
 * Random event sequences: every type of the event stream, in any order, with few ids, so that they meet.
 */
import fc from "fast-check"
import type { Event, EventBody, SessionState } from "../../../src/domain/event.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../../src/domain/ids.ts"
import { permissionOptions } from "../../../src/domain/question.ts"
import { noUsage } from "../../../src/domain/usage.ts"

const conversation_id = ConversationId.make(7)
const entry = fc.integer({ min: 1, max: 12 }).map((id) => EntryId.make(id))
const task = fc.integer({ min: 1, max: 9 }).map((id) => TaskId.make(id))
const submission = fc.integer({ min: 1, max: 4 }).map((id) => SubmissionId.make(id))
const call = fc.constantFrom("c1", "c2", "c3")
const words = fc.constantFrom("", "a", "two words", "line\nend", "\u2028 ü 💥", '"quoted"')
const tool = fc.constantFrom("bash", "read")
const args = fc.constantFrom({}, { path: "a.txt" }, { nested: { deep: [1, null] } })
const state = fc.constantFrom(
  "recovering" as const,
  "idle" as const,
  "preparing_request" as const,
  "streaming_llm" as const,
  "executing_tools" as const,
  "awaiting_children" as const,
  "sleeping_backoff" as const,
  "compacting" as const,
  "settling_run" as const,
)
const stop = fc.constantFrom("stop" as const, "length" as const, "tool_calls" as const, "aborted" as const)
const textPart = words.map((text) => ({ type: "text" as const, text }))
const image = fc.constant({ type: "image" as const, mediaType: "image/png", data: "AAAA" })
const thinking = words.map((text) => ({ type: "thinking" as const, text }))
const toolCall = fc.record({ type: fc.constant("toolCall" as const), id: call, name: tool, arguments: args })
const role = fc.constantFrom("scout" as const, "worker" as const)
const todo = fc.record({
  id: fc.constantFrom("1", "2"),
  text: words,
  status: fc.constantFrom("pending" as const, "done" as const),
})
const usage = fc.integer({ min: 0, max: 99 }).map((input) => ({ ...noUsage, input }))
const permission = fc.record({
  question_id: task,
  call_id: fc.option(call),
  title: words,
  created_at: fc.constant(1),
  expires_at: fc.option(fc.constant(120_001)),
  tool,
  arguments: args,
  reason: words,
  options: fc.constant(permissionOptions),
})
const choice = fc.record({
  question_id: task,
  call_id: fc.option(call),
  title: words,
  created_at: fc.constant(1),
  expires_at: fc.constant(null),
  questions: fc.constant([{ id: "q1", text: "Which?", options: [], multiple: false, freeText: true }]),
})

const is = <const T extends string>(type: T) => ({ type: fc.constant(type) })

const session: fc.Arbitrary<SessionState> = fc.record({
  conversation_id: fc.constant(conversation_id),
  state,
  model: fc.constantFrom("mock/echo", ""),
  mode: fc.constant("auto"),
  harness: fc.constant(null),
  cwd: fc.constant(null),
  title: fc.option(words),
  turn_id: fc.option(task),
  partial: fc.option(fc.record({ text: words, thinking: words })),
  tools: fc.array(fc.record({ task_id: task, call_id: call, name: tool, arguments: args, output: words }), {
    maxLength: 2,
  }),
  queued: fc.uniqueArray(submission, { maxLength: 2 }),
  retry: fc.constant(null),
  parked: fc.option(fc.constant({ reason: "crashed", crashes: 5 }), { freq: 12 }),
  compactions: fc.constant([]),
  compaction_failure: fc.constant(null),
  questions: fc.array(
    fc.oneof(
      permission.map((one) => ({ kind: "permission" as const, ...one })),
      choice.map((one) => ({ kind: "choice" as const, ...one })),
    ),
    { maxLength: 2 },
  ),
  subagents: fc.array(
    fc.record({ task_id: task, subagent_id: fc.constant(ConversationId.make(8)), role, running: fc.boolean() }),
    {
      maxLength: 2,
    },
  ),
  plan: fc.array(todo, { maxLength: 2 }),
  usage,
  entries: fc.integer({ min: 0, max: 6 }),
  seq_no: fc.constant(0),
})

const body: fc.Arbitrary<EventBody> = fc.oneof(
  { weight: 1, arbitrary: fc.record({ ...is("snapshot"), session }) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...is("submission_updated"),
      submission_id: submission,
      status: fc.constantFrom("queued" as const, "placed" as const, "done" as const, "unanswered" as const),
      reason: fc.option(fc.constantFrom("aborted" as const, "model_error" as const)),
      detail: fc.option(words),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ ...is("turn_started"), submission_ids: fc.array(submission), model: fc.constant("") }),
  },
  { weight: 1, arbitrary: fc.record({ ...is("turn_completed"), stop_reason: stop, entry_id: entry, text: words }) },
  {
    weight: 1,
    arbitrary: fc.record({ ...is("turn_error"), code: words, message: words, reference: fc.constant(null) }),
  },
  { weight: 1, arbitrary: fc.record(is("turn_cancelled")) },
  { weight: 6, arbitrary: fc.record({ ...is("text_delta"), text: words }) },
  { weight: 4, arbitrary: fc.record({ ...is("thinking_delta"), text: words }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...is("toolcall_delta"),
      call_id: call,
      name: tool,
      delta: words,
      arguments: fc.option(args),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.oneof(
      fc.record({
        ...is("message_completed"),
        entry_id: entry,
        role: fc.constant("assistant" as const),
        content: fc.array(fc.oneof(textPart, thinking, toolCall), { maxLength: 4 }),
        stop_reason: fc.option(stop),
      }),
      fc.record({
        ...is("message_completed"),
        entry_id: entry,
        role: fc.constant("user" as const),
        content: fc.array(fc.oneof(textPart, image), { maxLength: 3 }),
        stop_reason: fc.constant(null),
      }),
    ),
  },
  { weight: 2, arbitrary: fc.record({ ...is("stream_reset"), reason: words }) },
  {
    weight: 1,
    arbitrary: fc.record({ ...is("retry_scheduled"), attempt: fc.constant(2), at_ms: fc.constant(99), reason: words }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ ...is("tool_started"), task_id: task, call_id: call, name: tool, arguments: args }),
  },
  { weight: 2, arbitrary: fc.record({ ...is("tool_output"), call_id: call, delta: words }) },
  { weight: 1, arbitrary: fc.record({ ...is("tool_blocked"), call_id: call, name: tool, reason: words }) },
  {
    weight: 3,
    arbitrary: fc.record({
      ...is("tool_completed"),
      task_id: task,
      call_id: call,
      name: tool,
      is_error: fc.boolean(),
      output: fc.array(fc.oneof(textPart, image), { maxLength: 2 }),
      structured_output: fc.constant(null),
      details: fc.constant(null),
      entry_id: entry,
      duration_ms: fc.nat({ max: 99 }),
    }),
  },
  { weight: 5, arbitrary: fc.record({ ...is("state_changed"), from: state, to: state }) },
  { weight: 1, arbitrary: fc.record({ ...is("mode_changed"), mode: fc.constantFrom("plan", "auto") }) },
  { weight: 1, arbitrary: fc.record({ ...is("usage_updated"), usage, total: usage }) },
  {
    weight: 1,
    arbitrary: fc.record({
      ...is("compaction_started"),
      task_id: task,
      reason: fc.constant("manual" as const),
      mode: fc.constant("summary" as const),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      ...is("compaction_completed"),
      task_id: task,
      reason: fc.constant("manual" as const),
      method: fc.constant("summary" as const),
      status: fc.constantFrom("completed" as const, "failed" as const),
      entry_id: fc.option(entry),
      tokens_before: fc.constant(10),
      tokens_after: fc.constant(null),
      error: fc.option(words),
    }),
  },
  { weight: 2, arbitrary: permission.map((one) => ({ type: "permission_request" as const, ...one })) },
  { weight: 1, arbitrary: choice.map((one) => ({ type: "ui_request" as const, ...one })) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...is("question_settled"),
      question_id: task,
      result: fc.constant("allowed" as const),
      answer: fc.constant("allow_once" as const),
      by: fc.constant("local"),
      reason: fc.constant(null),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...is("plan_updated"), items: fc.array(todo, { maxLength: 3 }) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      ...is("subagent_started"),
      task_id: task,
      call_id: call,
      subagent_id: fc.constant(ConversationId.make(8)),
      role,
      task: words,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      ...is("subagent_finished"),
      task_id: task,
      call_id: call,
      subagent_id: fc.constant(ConversationId.make(8)),
      role,
      status: fc.constantFrom("completed" as const, "failed" as const),
      error: fc.option(words),
      duration_ms: fc.constant(5),
    }),
  },
  { weight: 1, arbitrary: fc.record({ ...is("notice"), level: fc.constant("info" as const), message: words }) },
)

/** A body with its head. */
export const stamped = (one: EventBody, seq: number, turn: number | null): Event =>
  // A body and its head make an event.
  Object.assign(
    {
      v: 1,
      conversation_id,
      turn_id: turn === null ? null : TaskId.make(turn),
      timestamp_ms: 1_000 + seq,
      seq_no: seq,
    },
    one.type === "snapshot" ? { ...one, session: { ...one.session, seq_no: seq } } : one,
  ) as Event

/** A stream as a watcher gets it: a snapshot, then anything. */
export const streams: fc.Arbitrary<ReadonlyArray<Event>> = fc
  .tuple(session, fc.array(fc.tuple(body, fc.option(fc.integer({ min: 1, max: 4 }), { freq: 6 })), { maxLength: 60 }))
  .map(([first, rest]) => [
    stamped({ type: "snapshot", session: first }, 10, null),
    ...rest.map(([one, turn], at) => stamped(one, 11 + at, turn)),
  ])

/** An event of one type for tests by hand. */
export const quiet: SessionState = {
  conversation_id,
  state: "idle",
  model: "mock/echo",
  mode: "auto",
  harness: null,
  cwd: null,
  title: null,
  turn_id: null,
  partial: null,
  tools: [],
  queued: [],
  retry: null,
  parked: null,
  compactions: [],
  compaction_failure: null,
  questions: [],
  usage: noUsage,
  entries: 0,
  seq_no: 10,
}
