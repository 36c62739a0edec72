/**
 * The check of histories before every request: damaged ones become valid for every service, valid ones stay as they are.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { AssistantPart, Message } from "../../src/domain/message.ts"
import { HistoryCheck, repair, validityRules } from "../../src/domain/validity.ts"
import { damagedHistory, shuffledHistory, validHistory } from "../models/arbitrary-history.ts"
import { faults } from "../models/strict-checker.ts"

const { strict, lenient } = validityRules

const user = (text: string): Message => ({ role: "user", content: [{ type: "text", text }] })
const answer = (...content: ReadonlyArray<AssistantPart>): Message => ({
  role: "assistant",
  content,
  model: "p/m",
  stopReason: "stop",
})
const call = (id: string, name = "read"): AssistantPart => ({ type: "toolCall", id, name, arguments: {} })
const result = (callId: string, text = "ok"): Message => ({
  role: "tool",
  callId,
  toolName: "read",
  content: [{ type: "text", text }],
  isError: false,
})

describe("repair", () => {
  it("returns a valid history as it is", () => {
    fc.assert(
      fc.property(validHistory, (messages) => {
        expect(faults(messages, strict)).toEqual([])
        const checked = repair(messages, strict)
        expect(checked).toEqual({ messages, repairs: [], adjustments: [] })
        expect(checked.messages).toBe(messages)
      }),
    )
  })

  for (const [name, rules] of Object.entries(validityRules)) {
    it(`makes any damaged history valid under the ${name} rules, and never throws`, () => {
      fc.assert(
        fc.property(fc.oneof(damagedHistory, shuffledHistory), (messages) => {
          expect(faults(repair(messages, rules).messages, rules)).toEqual([])
        }),
        { numRuns: 1_000 },
      )
    })

    it(`changes nothing a second time under the ${name} rules`, () => {
      fc.assert(
        fc.property(fc.oneof(damagedHistory, shuffledHistory), (messages) => {
          const once = repair(messages, rules).messages
          const twice = repair(once, rules)
          expect([...twice.repairs, ...twice.adjustments]).toEqual([])
          expect(twice.messages).toBe(once)
        }),
        { numRuns: 500 },
      )
    })

    it(`gives the same messages in pieces as at once under the ${name} rules`, () => {
      fc.assert(
        fc.property(
          fc.oneof(damagedHistory, shuffledHistory, validHistory),
          fc.array(fc.integer({ min: 1, max: 4 })),
          (messages, sizes) => {
            const check = new HistoryCheck(rules)
            let at = 0
            for (const size of sizes) {
              check.append(messages.slice(at, at + size))
              at += size
            }
            const pieces = check.append(messages.slice(at))
            const whole = repair(messages, rules)
            expect(pieces.messages).toEqual(whole.messages)
            expect(pieces.repairs.length > 0).toBe(whole.repairs.length > 0)
            expect(pieces.adjustments.length > 0).toBe(whole.adjustments.length > 0)
          },
        ),
        { numRuns: 500 },
      )
    })
  }

  it("does not look at settled messages again", () => {
    let reads = 0
    const counted = (message: Message): Message =>
      new Proxy(message, {
        get: (target, key, receiver) => {
          reads++
          return Reflect.get(target, key, receiver)
        },
      })
    const check = new HistoryCheck(strict)
    const turn = (i: number) => [
      user(`${i}`),
      answer(call(`c${i}`)),
      result(`c${i}`),
      answer({ type: "text", text: "x" }),
    ]
    const cost = (i: number) => {
      const before = reads
      check.append(turn(i).map(counted))
      return reads - before
    }
    const costs = Array.from({ length: 200 }, (_, i) => cost(i))
    expect(costs[199]).toBe(costs[2])
    expect(check.length).toBe(800)
  })

  it("gives a call without a result an error result, and drops results without a call", () => {
    const { messages, repairs } = repair(
      [user("go"), answer(call("a"), call("b")), result("b"), result("z"), user("?")],
      strict,
    )
    expect(messages.map((message) => (message.role === "tool" ? message.callId : message.role))).toEqual([
      "user",
      "assistant",
      "a",
      "b",
      "user",
    ])
    expect(messages[2]).toMatchObject({ isError: true })
    expect(repairs).toHaveLength(2)
  })

  it("moves results behind their answer, ahead of what came between", () => {
    const { messages } = repair(
      [user("go"), answer(call("a"), call("b")), result("b"), user("wait"), result("a")],
      strict,
    )
    expect(messages.map((message) => (message.role === "tool" ? message.callId : message.role))).toEqual([
      "user",
      "assistant",
      "a",
      "b",
      "user",
    ])
  })

  it("renames a call id that was used before, together with its result", () => {
    const history = [user("1"), answer(call("a")), result("a", "one"), answer(call("a")), result("a", "two"), user("?")]
    const { messages } = repair(history, strict)
    expect(messages[3]).toMatchObject({ content: [{ id: "a_2" }] })
    expect(messages[4]).toMatchObject({ callId: "a_2", content: [{ text: "two" }] })
  })

  it("replaces lone surrogates wherever text is", () => {
    const bad: AssistantPart = { type: "toolCall", id: "a", name: "read", arguments: { "k\ud800": ["\udfff"] } }
    const { messages } = repair([user("x\ud83d"), answer(bad), result("a")], strict)
    expect(messages[0]).toMatchObject({ content: [{ text: "x\ufffd" }] })
    expect(messages[1]).toMatchObject({ content: [{ arguments: { "k\ufffd": ["\ufffd"] } }] })
  })

  it("leaves out aborted and failed answers and what only they led to", () => {
    const aborted: Message = { role: "assistant", content: [call("a")], model: "p/m", stopReason: "aborted" }
    expect(repair([user("1"), aborted, result("a"), user("2")], strict).messages).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "1" },
          { type: "text", text: "2" },
        ],
      },
    ])
  })

  it("counts prompts in a row as no damage: they are only joined for a service that wants turns to alternate", () => {
    const history = [user("1"), user("2"), answer(call("a")), result("a"), user("3"), user("4")]
    const { messages, repairs, adjustments } = repair(history, strict)
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"])
    expect(repairs).toEqual([])
    expect(adjustments).toEqual([
      "message 1: joined with the user message before it",
      "message 5: joined with the user message before it",
    ])
    expect(repair(history, lenient)).toEqual({ messages: history, repairs: [], adjustments: [] })
  })

  it("tells damage apart from what a service demands, also in one group", () => {
    const history = [user("1"), answer(call("a")), user("2"), user("3"), result("a")]
    const { messages, repairs, adjustments } = repair(history, strict)
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool", "user"])
    expect(repairs).toEqual(["results moved behind their calls"])
    expect(adjustments).toEqual(["message 3: joined with the user message before it"])
  })

  it("puts a user message first, last and between answers where the service demands it", () => {
    const { messages } = repair([answer({ type: "text", text: "a" }), answer({ type: "text", text: "b" })], strict)
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant", "user"])
    expect(repair([answer({ type: "text", text: "a" })], lenient).repairs).toEqual([])
  })

  it("drops thinking that nothing follows, and an answer of nothing else", () => {
    const thinking: AssistantPart = { type: "thinking", text: "hm", signature: "s" }
    expect(repair([user("1"), answer(thinking), user("2")], strict).messages).toHaveLength(1)
    const { messages } = repair([user("1"), answer({ type: "text", text: "t" }, thinking), user("2")], strict)
    expect(messages[1]).toMatchObject({ content: [{ type: "text", text: "t" }] })
  })
})
