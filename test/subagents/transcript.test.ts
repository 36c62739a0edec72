/**
 * Subagents as a terminal shows them: under the call of a transcript, and as lines of a chat.
 */
import { describe, expect, it } from "vitest"
import type { Entry } from "../../src/domain/entry.ts"
import type { Event } from "../../src/domain/event.ts"
import type { Message } from "../../src/domain/message.ts"
import { terminalRenderer } from "../../src/protocols/terminal/renderer.ts"
import { painter } from "../../src/protocols/terminal/style.ts"
import { transcriptText } from "../../src/protocols/terminal/transcript.ts"

const entry = (id: number, kind: string, model: ReadonlyArray<Message>, data: Entry["data"] = null): Entry =>
  // Plain rows: the brands say nothing here.
  ({
    id,
    conversation: 1,
    kind,
    model,
    data,
    head: null,
    edits: [],
    task: null,
    createdAt: 0,
    seq: id,
  }) as unknown as Entry

const result = entry(1, "pi.tool-result", [
  {
    role: "tool",
    callId: "c",
    toolName: "delegate_subagent",
    content: [{ type: "text", text: "Started." }],
    isError: false,
    details: {
      subagents: [
        { task: 1, conversation: 2, role: "scout" },
        { task: 2, conversation: 3, role: "worker" },
      ],
    },
  },
])
const summary = entry(
  2,
  "pi.subagent",
  [{ role: "user", content: [{ type: "text", text: "Subagent scout (conversation 2) ran out of time: x" }] }],
  { call: "c", conversation: 2, role: "scout", status: "timed_out" },
)

describe("a transcript", () => {
  it("names the children under their call, each with its end as far as there is one", () => {
    const shown = transcriptText([result, summary], painter(false))
    expect(shown.split("\n").filter((line) => line.includes("↳"))).toEqual([
      "  ↳ scout: conversation 2, timed out",
      "  ↳ worker: conversation 3, no end yet",
    ])
  })
})

describe("a chat", () => {
  const base = {
    v: 1,
    conversation_id: 1,
    turn_id: 1,
    timestamp_ms: 0,
    seq_no: 1,
    task_id: 5,
    call_id: "c",
    subagent_id: 2,
    role: "scout",
  }
  const lines = (event: object) =>
    terminalRenderer
      .render(terminalRenderer.init({}), { ...base, ...event } as unknown as Event)[1]
      .map((block) => ("text" in block ? block.text : "")) // as above

  it("says in a line that one began, and in a line how it ended", () => {
    expect(lines({ type: "subagent_started", task: "look\nhere" })).toEqual([
      "→ subagent scout (conversation 2): look here",
    ])
    const over = { type: "subagent_finished", duration_ms: 1_200, error: null, status: "completed" }
    expect(lines(over)).toEqual(["✓ subagent scout (conversation 2) finished (1.2 s)"])
    expect(lines({ ...over, status: "failed", error: "no such thing" })).toEqual([
      "✗ subagent scout (conversation 2) failed (1.2 s): no such thing",
    ])
  })
})
