/**
 * Bodies: what is read of them, what is said of those that are wrong, and that none of them does harm.
 */
import { Either } from "effect"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { readInput } from "../../../src/protocols/agui/input-route.ts"
import { readRunInput } from "../../../src/protocols/agui/run-input.ts"

const base = { threadId: "t", runId: "r", messages: [], tools: [], context: [] }
const user = (id: string, content: unknown) => ({ id, role: "user", content })
const fault = (body: unknown) => Either.match(readRunInput(body), { onLeft: (e) => e.message, onRight: () => "fine" })

describe("RunAgentInput", () => {
  it("submits the user messages behind the last one of the agent, and none of ours", () => {
    const messages = [
      { id: "s", role: "system", content: "be brief" },
      user("u1", "old"),
      { id: "turn-3", role: "assistant", content: "answer" },
      user("entry-9", "of another client"),
      user("u2", "new"),
      user("u3", [{ type: "text", text: "newer" }]),
    ]
    const read = Either.getOrThrow(readRunInput({ ...base, messages }))
    expect(read.fresh.map(({ content, id }) => [id, content])).toEqual([
      ["u2", [{ type: "text", text: "new" }]],
      ["u3", [{ type: "text", text: "newer" }]],
    ])
    expect(read).toMatchObject({
      hasMessages: true,
      kept: [{ id: "s" }],
      userIds: ["u1", "u2", "u3"],
      interrupts: false,
    })
  })

  it("takes interrupts for granted of a client that declares the version, unless it says otherwise", () => {
    const declared = { ...base, protocolVersion: "1.0" }
    expect(Either.getOrThrow(readRunInput(declared)).interrupts).toBe(true)
    const props = { forwardedProps: { interrupts: false } }
    expect(Either.getOrThrow(readRunInput({ ...declared, ...props })).interrupts).toBe(false)
  })

  it.each([
    [null, "body: expected an object, got null"],
    [{ ...base, threadId: "" }, 'threadId: expected a string of 1 to 256 characters, got ""'],
    [{ ...base, runId: 7 }, "runId: expected a string of 1 to 256 characters, got 7"],
    [{ ...base, messages: {} }, "messages: expected an array, got an object"],
    [
      { ...base, messages: [{ role: "user", content: "x" }] },
      "messages.0.id: expected a string of 1 to 256 characters, got nothing",
    ],
    [
      { ...base, messages: [user("u", "")] },
      'messages.0.content: expected a text that is not empty, or an image, got ""',
    ],
    [
      { ...base, messages: [user("u", [{ type: "audio" }])] },
      'messages.0.content.0.type: expected "text" or "image", got "audio"',
    ],
    [
      { ...base, forwardedProps: { executionMode: "yolo" } },
      'forwardedProps.executionMode: expected one of plan, accept-edits, auto, got "yolo"',
    ],
    [
      { ...base, resume: [{ interruptId: "1", status: "maybe" }] },
      'resume.0.status: expected "resolved" or "cancelled", got "maybe"',
    ],
    [
      { ...base, resume: [{ interruptId: "x", status: "resolved" }] },
      'resume.0.interruptId: expected the id of a question, got "x"',
    ],
  ])("says what was expected (%j)", (body, message) => expect(fault(body)).toBe(message))

  const shaped = fc.record(
    {
      threadId: fc.oneof(fc.string(), fc.anything()),
      runId: fc.oneof(fc.string(), fc.anything()),
      messages: fc.oneof(
        fc.array(
          fc.record(
            {
              id: fc.oneof(fc.string(), fc.anything()),
              role: fc.oneof(fc.constantFrom("user", "assistant", "system"), fc.anything()),
              content: fc.oneof(
                fc.string(),
                fc.array(
                  fc.record({ type: fc.constantFrom("text", "image"), text: fc.anything(), source: fc.anything() }),
                ),
                fc.anything(),
              ),
            },
            { requiredKeys: [] },
          ),
        ),
        fc.anything(),
      ),
      context: fc.oneof(fc.array(fc.record({ description: fc.anything(), value: fc.anything() })), fc.anything()),
      resume: fc.oneof(
        fc.array(fc.record({ interruptId: fc.anything(), status: fc.anything(), payload: fc.anything() })),
        fc.anything(),
      ),
      forwardedProps: fc.anything(),
      protocolVersion: fc.anything(),
    },
    { requiredKeys: [] },
  )

  it("of any shape is read or refused, and never throws", () =>
    fc.assert(
      fc.property(fc.oneof(shaped, fc.anything()), (body) => {
        const read = readRunInput(body)
        if (Either.isLeft(read)) expect(read.left.message).toMatch(/^[\w.]+: expected .+, got .+/s)
      }),
      { numRuns: 2_000 },
    ))
})

describe("the input of a session", () => {
  it("of any shape is read or refused, and never throws", () =>
    fc.assert(
      fc.property(
        fc.oneof(
          fc.record({
            type: fc.constantFrom("prompt", "permission", "answer", "cancel", "x"),
            text: fc.anything(),
            questionId: fc.anything(),
            answer: fc.anything(),
            answers: fc.anything(),
          }),
          fc.anything(),
        ),
        (body) => {
          const read = readInput(body)
          if (Either.isLeft(read)) expect(read.left.message).toMatch(/^[\w.]+: expected .+, got .+/s)
        },
      ),
      { numRuns: 2_000 },
    ))
})
