/**
 * What is written comes back as it was: any text, any JSON, any message, large values.
 */
import { Effect } from "effect"
import type { Message } from "../../domain/message.ts"
import { text } from "../../domain/message.ts"
import type { TestKit } from "../conformance.ts"
import { conversation, document, entry, submission, task } from "./records.ts"
import type { Session, Sessions } from "./session.ts"

const begin = (session: Session, title: string | null = null) =>
  Effect.gen(function* () {
    const id = yield* session.mint("conversation")
    yield* session.commit({ conversations: [conversation(id, { title })] })
    return id
  })

/** One message of every role with every kind of part. */
const everyMessage: ReadonlyArray<Message> = [
  {
    role: "system",
    sections: [
      { name: "intro", text: "You are" },
      { name: "old", text: null },
    ],
    addTools: [{ name: "read", description: "Reads", parameters: { type: "object" } }],
    removeTools: ["write"],
  },
  { role: "user", content: [text("hello"), { type: "image", mediaType: "image/png", data: "aGk=" }] },
  {
    role: "assistant",
    model: "mock/echo",
    stopReason: "tool_calls",
    usage: { input: 1, output: 2, cacheRead: 3, cacheWrite: 4, reasoning: 5 },
    content: [
      { type: "thinking", text: "hm", signature: "s", meta: { google: { thought: true } } },
      { type: "thinking", text: "", redacted: "xyz" },
      text("doing"),
      { type: "toolCall", id: "c1", name: "read", arguments: { path: "a", deep: [1, { b: null }] } },
    ],
  },
  { role: "assistant", model: "mock/echo", stopReason: "error", error: "overloaded", content: [] },
  {
    role: "tool",
    callId: "c1",
    toolName: "read",
    content: [text("body")],
    isError: false,
    details: { lines: 3 },
  },
]

export const values = ({ describe, it, expect }: TestKit, sessions: Sessions): void => {
  describe("a stored value", () => {
    it("comes back as it was, whatever the message", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const target = yield* session.mint("entry")
          const id = yield* session.mint("entry")
          const row = entry(id, of, {
            model: everyMessage,
            data: { nested: [true, 1.5, "x", null] },
            edits: [
              { type: "omit", entry: target },
              { type: "replace", entry: target, model: [{ role: "user", content: [text("other")] }] },
            ],
          })
          const seq = yield* session.commit({ entries: [entry(target, of), row] })
          expect((yield* session.store().entries(of)).at(1)).toEqual({ ...row, seq })
        }),
      ))

    it("keeps every character: emoji, right-to-left, combining marks, NUL, lone surrogates inside JSON", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const wild = '🦊 שלום e\u0301 \u0000 \u2028 "quoted" \\ 日本語 \u{10ffff}'
          const of = yield* begin(session, wild)
          expect((yield* session.store().conversation(of))?.title).toBe(wild)
          const lone = `${wild} \ud800 \udc00`
          const id = yield* session.mint("entry")
          const request = submission(yield* session.mint("submission"), of, {
            requestId: wild,
            content: { text: lone },
          })
          const row = entry(id, of, { model: [{ role: "user", content: [text(lone)] }], data: { [lone]: lone } })
          const seq = yield* session.commit({ entries: [row], submissions: [request] })
          expect(yield* session.store().entries(of)).toEqual([{ ...row, seq }])
          expect(yield* session.store().submissionByRequest(of, wild)).toEqual({ ...request, seq })
        }),
      ))

    it("may be a megabyte", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const large = "äbcdefgh".repeat(131_072)
          const row = entry(yield* session.mint("entry"), of, { model: [{ role: "user", content: [text(large)] }] })
          const doc = document(yield* session.mint("document"), of, { history: "rewindable", value: { large } })
          const seq = yield* session.commit({ entries: [row], documents: [doc] })
          expect((yield* session.store().entries(of)).at(0)).toEqual({ ...row, seq })
          const [stored] = yield* session.store().documents(of)
          expect(stored?.value).toEqual({ large })
        }),
      ))

    it("of a task keeps every field in every outcome", () =>
      sessions((session) =>
        Effect.gen(function* () {
          const of = yield* begin(session)
          const owner = yield* session.mint("task")
          yield* session.commit({ tasks: [task(owner, of)] })
          const outcomes = [
            { status: "completed", result: { ok: true } },
            { status: "failed", error: "no" },
            { status: "aborted", reason: "asked" },
            { status: "faulted", error: "broke" },
            { status: "orphaned", reason: "gone" },
          ] as const
          for (const outcome of outcomes) {
            const row = task(yield* session.mint("task"), of, {
              status: "terminal",
              owner,
              background: true,
              abortRequested: true,
              crashes: 3,
              parked: "too many crashes",
              node: "node-1",
              fence: 4,
              leaseUntil: 5,
              wakeAt: 6,
              startedAt: 7,
              endedAt: 8,
              input: ["in"],
              checkpoint: { at: 1 },
              outcome,
            })
            const seq = yield* session.commit({ tasks: [row] })
            expect(yield* session.store().task(row.id)).toEqual({ ...row, seq })
          }
        }),
      ))
  })
}
