/**
 * The renderers of Chat Completions and Responses, without a node: what a client can put together from their items.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Event, EventBody, SessionState } from "../../../src/domain/event.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../../src/domain/ids.ts"
import { noUsage } from "../../../src/domain/usage.ts"
import type { ChatItem, ChatView } from "../../../src/protocols/openai/renderer.ts"
import { chatRenderer, renderAll } from "../../../src/protocols/openai/renderer.ts"
import { renderResponse, responseRenderer } from "../../../src/protocols/openai/response-renderer.ts"

const conversation = ConversationId.make(1)
const ours = SubmissionId.make(7)
const others = SubmissionId.make(6)
const turn = TaskId.make(3)

const event = (body: EventBody): Event =>
  Object.assign({ v: 1 as const, conversation_id: conversation, turn_id: turn, timestamp_ms: 0, seq_no: 1 }, body)

const session = (over: Partial<SessionState> = {}): SessionState => ({
  conversation_id: conversation,
  state: "idle",
  model: "script/x",
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
  seq_no: 1,
  ...over,
})

const snapshot = (over: Partial<SessionState> = {}) => event({ type: "snapshot", session: session(over) })
const started = (...ids: ReadonlyArray<SubmissionId>) =>
  event({ type: "turn_started", submission_ids: ids, model: "x" })
const text = (delta: string) => event({ type: "text_delta", text: delta })
const thinking = (delta: string) => event({ type: "thinking_delta", text: delta })
const reset = event({ type: "stream_reset", reason: "cut" })
const used = event({ type: "usage_updated", usage: { ...noUsage, input: 5, output: 2 }, total: noUsage })
const message = (words: string) =>
  event({
    type: "message_completed",
    entry_id: EntryId.make(9),
    role: "assistant",
    content: words === "" ? [] : [{ type: "text", text: words }],
    stop_reason: "stop",
  })
const completed = (words: string) =>
  event({ type: "turn_completed", stop_reason: "stop", entry_id: EntryId.make(9), text: words })
const settled = (id = ours) =>
  event({ type: "submission_updated", submission_id: id, status: "done", reason: null, detail: null })
const whole = (...pieces: ReadonlyArray<string>) => [
  snapshot(),
  started(ours),
  ...pieces.map(text),
  message(pieces.join("")),
  used,
  completed(pieces.join("")),
  settled(),
]

const options = {
  id: "chatcmpl-1",
  created: 1,
  model: "super-pi-code",
  includeUsage: true,
  check: null,
  submission: ours,
  running: false,
}

const rendered = (events: ReadonlyArray<ReadonlyArray<Event>>, over: Partial<typeof options> = {}) => {
  let view: ChatView = chatRenderer.init({ ...options, ...over })
  const items: Array<ChatItem> = []
  for (const chunk of events) {
    const [next, more] = renderAll(view, chunk)
    view = next
    items.push(...more)
  }
  return items
}
const joined = (items: ReadonlyArray<ChatItem>, key: "content" | "reasoning_content" = "content") =>
  items.map((item) => ("choices" in item ? (item.choices[0]?.delta[key] ?? "") : "")).join("")

/** Some events, cut into chunks at any places. */
const cut = <A>(items: ReadonlyArray<A>) =>
  fc.array(fc.boolean(), { minLength: items.length, maxLength: items.length }).map((cuts) => {
    const chunks: Array<Array<A>> = [[]]
    for (const [at, item] of items.entries()) {
      chunks.at(-1)?.push(item)
      if (cuts[at] === true) chunks.push([])
    }
    return chunks
  })

const pieces = fc.array(fc.string({ minLength: 1, maxLength: 8 }), { minLength: 1, maxLength: 8 })

describe("chunks", () => {
  it("add up to the same text however the events come together", () => {
    fc.assert(
      fc.property(
        pieces.chain((parts) => fc.tuple(fc.constant(parts), cut(whole(...parts)))),
        ([parts, chunks]) => {
          const items = rendered(chunks)
          expect(joined(items)).toBe(parts.join(""))
          expect(items.filter((item) => "choices" in item && item.choices[0]?.finish_reason === "stop")).toHaveLength(1)
          expect(items.filter((item) => "choices" in item && item.usage?.total_tokens === 7)).toHaveLength(1)
          expect(items[0]).toMatchObject({ choices: [{ delta: { role: "assistant" } }] })
        },
      ),
    )
  })

  it("of deltas that come together are one chunk", () => {
    const items = rendered([
      [snapshot(), started(ours)],
      [text("a"), text("b"), text("c")],
    ])
    expect(items.slice(1)).toMatchObject([{ choices: [{ delta: { content: "abc" } }] }])
  })

  it("are of our submission alone", () => {
    const items = rendered([
      [snapshot({ turn_id: turn }), text("not ours"), message("not ours"), settled(others), ...whole("ours").slice(1)],
    ])
    expect(joined(items)).toBe("ours")
  })

  it("say nothing twice where a response is repeated from its start, in any pieces", () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, maxLength: 30 }),
        fc.nat(30),
        fc.array(fc.nat(30), { maxLength: 4 }),
        (words, at, cuts) => {
          const before = words.slice(0, at)
          const places = [0, ...cuts.map((one) => Math.min(one, words.length)), words.length].sort((a, b) => a - b)
          const again = places.slice(1).map((end, i) => text(words.slice(places[i], end)))
          const items = rendered([
            [
              snapshot(),
              started(ours),
              ...(before === "" ? [] : [text(before), reset]),
              ...again,
              message(words),
              completed(words),
              settled(),
            ],
          ])
          expect(joined(items)).toBe(words)
        },
      ),
    )
  })

  it("say what takes the place of a void response behind an empty line", () => {
    const items = rendered([
      [
        snapshot(),
        started(ours),
        text("one way"),
        reset,
        text("one "),
        text("other"),
        message("one other"),
        completed("one other"),
        settled(),
      ],
    ])
    expect(joined(items)).toBe("one way\n\none other")
  })

  it("say what was missed where events were lost, once", () => {
    const partial = { text: "abcdef", thinking: "" }
    const items = rendered([
      [snapshot(), started(ours), text("abc")],
      [snapshot({ turn_id: turn, partial }), text("g"), message("abcdefg"), completed("abcdefg"), settled()],
    ])
    expect(joined(items)).toBe("abcdefg")
  })

  it("start with what was said before, where the run was going already", () => {
    const partial = { text: "so far", thinking: "hm" }
    const items = rendered(
      [
        [
          snapshot({ turn_id: turn, partial }),
          text(" so good"),
          message("so far so good"),
          completed("so far so good"),
          settled(),
        ],
      ],
      { running: true },
    )
    expect(joined(items)).toBe("so far so good")
    expect(joined(items, "reasoning_content")).toBe("hm")
  })

  it("of a failed turn end with an error object and the finish reason error", () => {
    const failure = event({ type: "turn_error", code: "model_rejected", message: "no", reference: null })
    const over = event({
      type: "submission_updated",
      submission_id: ours,
      status: "unanswered",
      reason: "model_error",
      detail: "no",
    })
    const items = rendered([[snapshot(), started(ours), text("half"), failure, over]])
    expect(items.slice(-3)).toMatchObject([
      { error: { code: "model_rejected", message: "no" } },
      { choices: [{ finish_reason: "error" }] },
      { choices: [] },
    ])
  })

  it("say nothing behind the end", () => {
    const items = rendered([whole("a"), [text("b"), settled(), started(ours), text("c")]])
    expect(joined(items)).toBe("a")
  })
})

describe("response events", () => {
  const base = {
    id: "resp_1_7",
    created: 1,
    model: "super-pi-code",
    conversation,
    previous: null,
    instructions: null,
    metadata: {},
    format: { type: "text" },
    background: false,
  }

  const runs = fc.array(
    fc.oneof(
      fc.string({ minLength: 1, maxLength: 5 }).map(text),
      fc.string({ minLength: 1, maxLength: 5 }).map(thinking),
      fc.constant(event({ type: "tool_started", task_id: turn, call_id: "c", name: "ls", arguments: {} })),
      fc.constant(
        event({
          type: "tool_completed",
          task_id: turn,
          call_id: "c",
          name: "ls",
          is_error: false,
          output: [],
          structured_output: null,
          details: null,
          entry_id: EntryId.make(3),
          duration_ms: 1,
        }),
      ),
      fc.constant(reset),
      fc.constant(event({ type: "tool_blocked", call_id: "d", name: "bash", reason: "no" })),
      fc.constant(snapshot({ turn_id: turn })),
    ),
    { maxLength: 20 },
  )

  it("are numbered without a gap, open and close each item once, and end with the whole response", () => {
    fc.assert(
      fc.property(runs, (middle) => {
        let view = responseRenderer.init({ base, check: null, submission: ours, running: false })
        const events: Array<{
          readonly type: string
          readonly sequence_number: number
          readonly output_index?: unknown
          readonly response?: unknown
        }> = []
        for (const one of [snapshot(), started(ours), ...middle, completed(""), settled()]) {
          const [next, more] = renderResponse(view, [one])
          view = next
          events.push(...more)
        }
        expect(events.map((one) => one.sequence_number)).toEqual(events.map((_, at) => at))
        const places = (type: string) => events.filter((one) => one.type === type).map((one) => one.output_index)
        const added = places("response.output_item.added")
        expect(added).toEqual(added.map((_, at) => at))
        const done = places("response.output_item.done")
        expect(new Set(done).size).toBe(new Set(added).size - unanswered(middle))
        expect(events.at(-1)).toMatchObject({
          type: "response.completed",
          response: { id: "resp_1_7", status: "completed" },
        })
      }),
    )
  })

  /** A call that was started and never ended leaves its item open. */
  const unanswered = (middle: ReadonlyArray<Event>): number => {
    let open = 0
    let waiting = 0
    for (const one of middle) {
      if (one.type === "tool_started") {
        open += waiting
        waiting = 1
      } else if (one.type === "tool_completed") waiting = 0
    }
    return open + waiting
  }

  it("leave void words out of the final response", () => {
    let view = responseRenderer.init({ base, check: null, submission: ours, running: false })
    ;[view] = renderResponse(view, [
      snapshot(),
      started(ours),
      text("one way"),
      reset,
      text("another"),
      message("another"),
      completed("another"),
      settled(),
    ])
    const texts = view.final?.output.map((item) => (item.type === "message" ? item.content[0]?.text : item.type))
    expect(texts).toEqual(["another"])
  })
})
