/**
 * The demonstration: its real run, and the evidence that it judges.
 */
import { readdirSync } from "node:fs"
import { tmpdir } from "node:os"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Facts, prove } from "../../src/cli/demo-evidence.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { Event, EventBody } from "../../src/domain/event.ts"
import { ConversationId, EntryId, Seq, TaskId } from "../../src/domain/ids.ts"
import { type Message, text } from "../../src/domain/message.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
})

afterAll(() => bench.remove())

const leftovers = () => readdirSync(tmpdir()).filter((name) => name.startsWith("super-pi-demo-"))

describe("super-pi demo", () => {
  it("shows in a pipe that a killed turn ends well, and leaves nothing behind", async () => {
    const before = leftovers()
    const { code, stdout, stderr } = await bench.run(["demo"], {
      env: { TMPDIR: bench.directory, OPENAI_API_KEY: "sk-unused" },
    })
    expect([code, stderr]).toEqual([0, ""])
    expect(stdout).toContain("GEMINI_API_KEY")
    expect(stdout).toContain("is killed (SIGKILL)")
    expect(stdout.match(/^ {4}✓ .*$/gm)?.slice(-6)).toEqual([
      "    ✓ the edit ran once",
      "    ✓ the killed call was not run again, but reported to the model as interrupted",
      "    ✓ the test started only as often as the model asked for it",
      "    ✓ the prompt was admitted once",
      "    ✓ every call has its result",
      "    ✓ the turn was finished",
    ])
    expect(stdout).not.toContain("\u001b")
    expect(leftovers()).toEqual(before)
    expect(readdirSync(bench.directory).filter((name) => name.startsWith("super-pi-demo-"))).toEqual([])
  })
})

describe("the evidence of the demonstration", () => {
  const entry = (id: number, message: Message): Entry => ({
    id: EntryId.make(id),
    conversation: ConversationId.make(1),
    kind: "pi.test",
    model: [message],
    data: null,
    head: null,
    edits: [],
    task: null,
    createdAt: 0,
    seq: Seq.make(1),
  })
  const call = (id: number, callId: string, name: string): Entry =>
    entry(id, {
      role: "assistant",
      content: [{ type: "toolCall", id: callId, name, arguments: {} }],
      model: "script/demo",
      stopReason: "tool_calls",
    })
  const result = (id: number, callId: string, toolName: string, isError: boolean, output: string): Entry =>
    entry(id, { role: "tool", callId, toolName, content: [text(output)], isError })
  const event = (body: EventBody): Event => ({
    ...body,
    v: 1,
    conversation_id: ConversationId.make(1),
    turn_id: null,
    timestamp_ms: 0,
    seq_no: 1,
  })
  const started = (call_id: string, name: string) =>
    event({ type: "tool_started", task_id: TaskId.make(1), call_id, name, arguments: {} })

  const good: Facts = {
    entries: [
      call(1, "e", "edit"),
      result(2, "e", "edit", false, "done"),
      call(3, "b1", "bash"),
      result(4, "b1", "bash", true, "The call was interrupted"),
      call(5, "b2", "bash"),
      result(6, "b2", "bash", false, "ok"),
    ],
    lives: [[started("e", "edit"), started("b1", "bash")], [started("b2", "bash")]],
    killedCall: "b1",
    answer: "Fixed.",
    submissions: [1, 1],
    editedAt: [5, 5],
    testRuns: 2,
    testCode: 0,
  }
  const failing = (facts: Partial<Facts>) =>
    prove({ ...good, ...facts })
      .filter((proof) => !proof.holds)
      .map((proof) => proof.claim)

  it("holds for a turn that was recovered as promised", () => {
    expect(failing({})).toEqual([])
  })

  it("fails when the edit was repeated, or the file was written again", () => {
    expect(failing({ lives: [good.lives[0], [started("e", "edit"), started("b2", "bash")]] })).toEqual([
      "the edit ran once",
    ])
    expect(failing({ editedAt: [5, 6] })).toEqual(["the edit ran once"])
  })

  it("fails when the killed call ran again or was not reported", () => {
    expect(failing({ lives: [good.lives[0], [started("b1", "bash")]], testRuns: 3 })).toHaveLength(2)
    const quiet = good.entries.map((one) => (one.id === 4 ? result(4, "b1", "bash", false, "ok") : one))
    expect(failing({ entries: quiet })).toHaveLength(1)
  })

  it("fails when the prompt was admitted twice, a result is missing, or the turn has no answer", () => {
    expect(failing({ submissions: [1, 2] })).toEqual(["the prompt was admitted once"])
    expect(failing({ entries: good.entries.slice(0, -1) })).toEqual(["every call has its result"])
    expect(failing({ answer: null })).toEqual(["the turn was finished"])
    expect(failing({ testCode: 1 })).toEqual(["the turn was finished"])
  })
})
