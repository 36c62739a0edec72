/**
 * The terminal renderer and its pure parts.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { Event, EventBody, SessionState } from "../../src/domain/event.ts"
import { ConversationId, EntryId, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { emptyLayout, type LayoutOptions, lay } from "../../src/protocols/terminal/layout.ts"
import { filterPaste, noPaste, pastedBreak, restorePaste } from "../../src/protocols/terminal/paste.ts"
import { type Block, terminalRenderer, type View } from "../../src/protocols/terminal/renderer.ts"
import { oneLine, sanitize, sanitizeChunk } from "../../src/protocols/terminal/sanitize.ts"
import { statusLine } from "../../src/protocols/terminal/status.ts"
import { traitsOf } from "../../src/protocols/terminal/style.ts"
import { renderTree } from "../../src/protocols/terminal/tree.ts"
import { displayWidth, truncate } from "../../src/protocols/terminal/width.ts"

const { flush, init, render } = terminalRenderer

const event = (body: EventBody, at = 1000): Event => ({
  ...body,
  v: 1,
  conversation_id: ConversationId.make(7),
  turn_id: null,
  timestamp_ms: at,
  seq_no: 1,
})

/** Control characters but newline and tab. */
const control = /[^\P{Cc}\n\t]/u

const colorCode = new RegExp(`${String.fromCharCode(27)}\\[(\\d+)m`, "g")

const runAll = (events: ReadonlyArray<Event>, from: View = init({})) => {
  let view = from
  const blocks: Array<Block> = []
  for (const one of events) {
    const [next, more] = render(view, one)
    view = next
    blocks.push(...more)
  }
  return { view, blocks }
}

/** Everything that a run shows, to its last character. */
const shown = (events: ReadonlyArray<Event>, options: LayoutOptions): string => {
  const { view, blocks } = runAll(events)
  const ended = [...blocks, ...flush(view)[1]]
  let layout = emptyLayout
  let out = ""
  for (const block of ended) {
    const laid = lay(layout, [block], options)
    layout = laid.layout
    out += laid.out
  }
  return out
}

const pipe: LayoutOptions = { color: false, columns: null }
const task = TaskId.make(3)

/** In the middle of an answer. */
const session: SessionState = {
  conversation_id: ConversationId.make(7),
  state: "streaming_llm",
  model: "m",
  mode: "auto",
  harness: null,
  cwd: null,
  title: null,
  turn_id: null,
  partial: { text: "so far", thinking: "" },
  tools: [{ task_id: task, call_id: "c9", name: "bash", arguments: { command: "ls" }, output: "x\n" }],
  queued: [],
  compactions: [],
  compaction_failure: null,
  questions: [],
  retry: null,
  parked: null,
  usage: noUsage,
  entries: 1,
  seq_no: 9,
}

const turn: ReadonlyArray<Event> = [
  event({ type: "state_changed", from: "idle", to: "preparing_request" }),
  event({ type: "turn_started", submission_ids: [SubmissionId.make(1)], model: "mock/echo" }),
  event({ type: "state_changed", from: "preparing_request", to: "streaming_llm" }),
  event({ type: "thinking_delta", text: "let me see" }),
  event({ type: "text_delta", text: "I read " }),
  event({ type: "text_delta", text: "the file." }),
  event({ type: "toolcall_delta", call_id: "c1", name: "read", delta: "{", arguments: null }),
  event({
    type: "message_completed",
    entry_id: EntryId.make(2),
    role: "assistant",
    content: [{ type: "text", text: "I read the file." }],
    stop_reason: "tool_calls",
  }),
  event({ type: "tool_started", task_id: task, call_id: "c1", name: "read", arguments: { path: "a.txt" } }),
  event({ type: "tool_output", call_id: "c1", delta: "one\ntwo\n" }),
  event({
    type: "tool_completed",
    task_id: task,
    call_id: "c1",
    name: "read",
    is_error: false,
    output: [{ type: "text", text: "one\ntwo" }],
    structured_output: null,
    details: null,
    entry_id: EntryId.make(3),
    duration_ms: 12,
  }),
  event({ type: "text_delta", text: "Done:\n\n- one\n- two" }),
  event({
    type: "message_completed",
    entry_id: EntryId.make(4),
    role: "assistant",
    content: [{ type: "text", text: "Done:\n\n- one\n- two" }],
    stop_reason: "stop",
  }),
  event({ type: "turn_completed", stop_reason: "stop", entry_id: EntryId.make(4), text: "Done:\n\n- one\n- two" }),
  event({ type: "state_changed", from: "settling_run", to: "idle" }),
]

describe("the terminal renderer", () => {
  it("shows a turn as it reads: text as it comes, one line per tool", () => {
    expect(shown(turn, pipe)).toMatchInlineSnapshot(`
      "I read the file.
      ✓ read a.txt (12 ms)
      Done:

      - one
      - two
      "
    `)
  })

  it("shows the same words on a narrow screen, each line within its width", () => {
    const out = shown(turn, { color: false, columns: 24 })
    for (const line of out.split("\n")) expect(displayWidth(line)).toBeLessThan(24)
    expect(out.replace(/\s+/g, " ")).toContain("I read the file.")
  })

  it("writes no escape codes without colour, and closes every colour that it opens", () => {
    expect(shown(turn, pipe)).not.toContain("\u001b")
    const colored = shown(turn, { color: true, columns: 80 })
    const escapes = [...colored.matchAll(colorCode)].map((match) => Number(match[1]))
    expect(escapes.length).toBeGreaterThan(0)
    expect(escapes.length % 2).toBe(0)
    expect(escapes.filter((_, index) => index % 2 === 1).every((code) => code === 22 || code === 39)).toBe(true)
  })

  it("shows thinking only when asked", () => {
    const events = turn.slice(0, 6)
    const plain = runAll(events).blocks
    expect(plain.some((block) => block.kind === "thinking")).toBe(false)
    const asked = runAll(events, init({ showThinking: true })).blocks
    expect(asked.map((block) => block.kind)).toEqual(["thinking", "break", "text", "text"])
  })

  it("shows an answer that was not streamed", () => {
    const completed = turn.filter((one) => one.type === "message_completed")
    expect(shown(completed, pipe)).toBe("I read the file.\nDone:\n\n- one\n- two\n")
  })

  it("shows an error once, though the turn and the submission both report it", () => {
    const failed = [
      event({ type: "turn_error", code: "x", message: "the model refused", reference: null }),
      event({
        type: "submission_updated",
        submission_id: SubmissionId.make(1),
        status: "unanswered",
        reason: "model_error",
        detail: "the model refused",
      }),
    ]
    expect(shown(failed, pipe)).toBe("the model refused\n")
  })

  it("says which prompts are not asked any more, of those that were queued", () => {
    const updated = (id: number, status: "queued" | "placed" | "unanswered", reason: "aborted" | "withdrawn" | null) =>
      event({ type: "submission_updated", submission_id: SubmissionId.make(id), status, reason, detail: null })
    const cancelled = [
      updated(1, "queued", null),
      updated(1, "placed", null),
      updated(2, "queued", null),
      updated(1, "unanswered", "aborted"),
      updated(2, "unanswered", "withdrawn"),
      event({ type: "turn_cancelled" }),
    ]
    expect(shown(cancelled, pipe)).toBe("not asked any more: what was queued as 2\ncancelled\n")
  })

  it("says once what goes wrong every second", () => {
    const full = event({ type: "notice", level: "warning", message: "the disk is full; it is tried again" })
    const other = event({ type: "notice", level: "warning", message: "something else" })
    expect(shown([full, full, full, other, full], pipe)).toBe(
      "the disk is full; it is tried again\nsomething else\nthe disk is full; it is tried again\n",
    )
  })

  it("says that a reset answer starts over, and a retry when it comes", () => {
    const events = [
      event({ type: "text_delta", text: "Half an ans" }),
      event({ type: "stream_reset", reason: "the connection broke" }),
      event({ type: "retry_scheduled", attempt: 2, at_ms: 4000, reason: "429" }),
      event({ type: "text_delta", text: "Whole" }),
    ]
    expect(shown(events, pipe)).toBe(
      "Half an ans\nthe answer starts over: the connection broke\ntrying again in 3.0 s (attempt 2): 429\nWhole\n",
    )
  })

  it("tells of a compaction that somebody waits for, and of its end", () => {
    const about = { task_id: task, reason: "manual" } as const
    const over = { ...about, method: "summary", entry_id: null, tokens_after: null, tokens_before: 120_000 } as const
    const events = [
      event({ type: "compaction_started", ...about, mode: "hybrid" }),
      event({ type: "compaction_completed", ...over, status: "completed", tokens_after: 18_200, error: null }),
      event({ type: "compaction_completed", ...over, status: "failed", error: "no key\u001b[31m" }),
    ]
    expect(shown(events, pipe)).toBe(
      [
        "compacting the context…",
        "compacted: about 120.0k tokens are 18.2k now",
        "the context could not be compacted: no key",
        "",
      ].join("\n"),
    )
    // Ctrl-C has something to cancel meanwhile, and nothing afterwards.
    expect(runAll(events.slice(0, 1)).view.compacting).toBe(true)
    expect(runAll(events.slice(0, 2)).view.compacting).toBe(false)
  })

  it("is silent about a compaction beside the work that came too late", () => {
    const about = { task_id: task, reason: "background" } as const
    const over = {
      ...about,
      method: "summary",
      entry_id: null,
      tokens_after: null,
      tokens_before: 1,
      error: null,
    } as const
    const events = [
      event({ type: "compaction_started", ...about, mode: "hybrid" }),
      event({ type: "compaction_completed", ...over, status: "stale" }),
    ]
    expect(shown(events, pipe)).toBe("")
  })

  it("joins in the middle from a snapshot", () => {
    const { view, blocks } = runAll([event({ type: "snapshot", session })])
    expect(blocks).toEqual([{ kind: "text", text: "so far" }])
    expect(view.startedAt).toBe(1000)
    expect(statusLine(view, 3000, 80)).toContain("bash ls · x")
  })

  it("says on joining that a run is parked, and what can be done", () => {
    const parked = { reason: "restart_limit: the process died 5 times", crashes: 5 }
    const snapshot = event({
      type: "snapshot",
      session: { ...session, state: "idle", partial: null, tools: [], parked },
    })
    expect(shown([snapshot], pipe)).toBe(
      "the run is parked (restart_limit: the process died 5 times); /retry runs it again, /cancel ends it\n",
    )
  })

  it("shows in its status line what runs, since when, and how many tokens", () => {
    const { view } = runAll([
      ...turn.slice(0, 10),
      event({ type: "usage_updated", usage: noUsage, total: { ...noUsage, input: 1200, output: 34 } }),
    ])
    expect(statusLine(view, 3500, 80)).toMatch(/^. read a\.txt · two · 2\.5 s · 1\.2k in, 34 out$/u)
    expect(statusLine(runAll(turn).view, 3500, 80)).toBeNull()
    for (const columns of [1, 10, 20, 30, 79]) {
      expect(displayWidth(statusLine(view, 3500, columns) ?? "")).toBeLessThan(Math.max(11, columns))
    }
  })

  it("never passes a control character on, whatever the model and the tools write, in whatever pieces", () => {
    const nasty = fc.oneof(
      fc.constantFrom(
        "\u001b[2J",
        "\u001b]0;title\u0007",
        "\u001bP+q\u001b\\",
        "\u009b31m",
        "\r\n",
        "\r",
        "\b",
        "\u0000",
        "\u001b",
        "[31m",
        "\u007f",
      ),
      fc.string({ unit: "binary" }),
    )
    fc.assert(
      fc.property(fc.array(nasty), fc.option(fc.integer({ min: 20, max: 90 })), (pieces, columns) => {
        const events = pieces.flatMap((text) => [
          event({ type: "text_delta", text }),
          event({ type: "tool_started", task_id: task, call_id: text, name: text, arguments: { command: text } }),
          event({ type: "notice", level: "info", message: text }),
        ])
        expect(shown(events, { color: false, columns })).not.toMatch(control)
      }),
    )
  })
})

describe("the layout", () => {
  it("gives the same output however the text was cut into pieces", () => {
    const pieces = fc.array(fc.string({ unit: fc.constantFrom("a", "b", " ", "\n", "日", "x y") }), { maxLength: 20 })
    fc.assert(
      fc.property(pieces, fc.constantFrom(null, 20, 33, 80), (parts, columns) => {
        const lines = (blocks: ReadonlyArray<Block>) => {
          let layout = emptyLayout
          let out = ""
          for (const block of [...blocks, { kind: "break" } as const]) {
            const laid = lay(layout, [block], { color: false, columns })
            layout = laid.layout
            out += laid.out
          }
          return out
        }
        const whole = lines([{ kind: "text", text: parts.join("") }])
        expect(lines(parts.map((text) => ({ kind: "text", text })))).toBe(whole)
      }),
    )
  })

  it("keeps every unfinished line within the width", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "grapheme" })), fc.integer({ min: 20, max: 60 }), (parts, columns) => {
        let layout = emptyLayout
        for (const text of parts) {
          layout = lay(layout, [{ kind: "text", text: sanitize(text) }], { color: false, columns }).layout
          expect(displayWidth(layout.partial)).toBeLessThan(columns)
        }
      }),
    )
  })
})

describe("sanitising", () => {
  it("takes whole sequences out and keeps the text around them", () => {
    expect(sanitize("a\u001b[31mred\u001b[0m b\u001b]8;;http://x\u0007link\u001b]8;;\u0007 c\u001b(B d\u001bc e")).toBe(
      "ared blink c d e",
    )
    expect(sanitize("one\r\ntwo\rthree\ttab")).toBe("one\ntwo\nthree\ttab")
    expect(sanitize("safe\u202Egnp.exe\u202C \u2066x\u2069")).toBe("safegnp.exe x")
    expect(oneLine("a\n\n  b\u0007\tc")).toBe("a b c")
  })

  it("finds a sequence that arrives in pieces, and gives up on one that never ends", () => {
    fc.assert(
      fc.property(fc.nat(), (cut) => {
        const text = "x\u001b[38;5;1mred\u001b]0;t\u001b\\y"
        const at = cut % text.length
        const first = sanitizeChunk("", text.slice(0, at))
        const second = sanitizeChunk(first.pending, text.slice(at))
        expect(first.text + second.text).toBe("xredy")
      }),
    )
    const endless = sanitizeChunk("", `\u001b]0;${"x".repeat(1000)}`)
    expect(endless).toEqual({ text: `]0;${"x".repeat(1000)}`, pending: "" })
  })

  it("leaves printable text alone", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (text) => {
        fc.pre(!control.test(text))
        expect(sanitize(text)).toBe(text)
      }),
    )
  })
})

describe("widths", () => {
  it("count wide and combining characters", () => {
    expect(displayWidth("日本")).toBe(4)
    expect(displayWidth("e\u0301")).toBe(1)
    expect(displayWidth("🙂")).toBe(2)
  })

  it("are kept by truncating", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), fc.integer({ min: 0, max: 30 }), (text, columns) => {
        const cut = truncate(text, columns)
        expect(displayWidth(cut)).toBeLessThanOrEqual(columns)
        if (displayWidth(text) <= columns && columns > 0) expect(cut).toBe(text)
      }),
    )
  })
})

describe("pasting", () => {
  it("keeps the line breaks of a paste in one line, however it arrives", () => {
    const typed = "ab\u001b[200~one\r\ntwo\rthree\u001b[201~cd\r"
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 40, maxLength: 40 }), (sizes) => {
        let paste = noPaste
        let out = ""
        let at = 0
        for (const size of sizes) {
          // The pair of a carriage return and a newline is one break only where it arrives whole, as terminals send it.
          let end = at + size
          if (typed[end - 1] === "\r" && typed[end] === "\n") end++
          // A lone escape outside a paste is the Escape key.
          if (typed[end - 1] === "\u001b" && end < 5) end++
          const filtered = filterPaste(paste, typed.slice(at, end))
          paste = filtered.paste
          out += filtered.out
          at = end
        }
        expect(out).toBe(`abone${pastedBreak}two${pastedBreak}threecd\r`)
        expect(restorePaste("one␤two")).toBe("one\ntwo")
      }),
    )
  })

  it("passes keys through at once", () => {
    expect(filterPaste(noPaste, "\u001b")).toEqual({ paste: noPaste, out: "\u001b" })
    expect(filterPaste(noPaste, "\u001b[A").out).toBe("\u001b[A")
  })
})

describe("the traits of a terminal", () => {
  it("are none outside a terminal or on a dumb one, and no colour with NO_COLOR", () => {
    expect(traitsOf({ isTTY: false }, { TERM: "xterm" })).toEqual({ cursor: false, color: false })
    expect(traitsOf({ isTTY: true }, { TERM: "dumb" })).toEqual({ cursor: false, color: false })
    expect(traitsOf({ isTTY: true }, { TERM: "xterm", NO_COLOR: "1" })).toEqual({ cursor: true, color: false })
    expect(traitsOf({ isTTY: true }, { TERM: "xterm" })).toEqual({ cursor: true, color: true })
  })
})

describe("the supervision tree", () => {
  it("shows state, mailbox, restarts and the last crash of each node", () => {
    const leaf = {
      name: "conversation-7",
      path: "/user/conversation-7",
      kind: "machine",
      state: "executing_tools",
    } as const
    const tree = renderTree(
      {
        name: "root",
        path: "/",
        kind: "supervisor",
        state: "one_for_one",
        mailbox: 0,
        restarts: 0,
        lastCrash: null,
        children: [
          { ...leaf, mailbox: 2, restarts: 1, lastCrash: { message: "boom\n\u001b[2Jx", at: 0 }, children: [] },
          {
            name: "sandbox",
            path: "/sandbox",
            kind: "actor",
            state: "idle",
            mailbox: 0,
            restarts: 0,
            lastCrash: null,
            children: [],
          },
        ],
      },
      { color: false, columns: null, now: 300_000 },
    )
    expect(tree).toMatchInlineSnapshot(`
      "root  one_for_one
      ├─ conversation-7  executing_tools · mailbox 2 · restarts 1 · last crash 5 min ago: boom x
      └─ sandbox  idle"
    `)
  })
})
