/**
 * The pure parts of the chat: calls and their details, the line that says where it stands, completion, the search, what commands say.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, describe, expect, it } from "vitest"
import { candidatesOf, complete } from "../../src/cli/chat-complete.ts"
import { contextLines, sessionLines, statusLines } from "../../src/cli/chat-info.ts"
import { costOfEntries, makeMeter } from "../../src/cli/chat-meter.ts"
import { makeChatModels } from "../../src/cli/chat-models.ts"
import { outputLines } from "../../src/cli/chat-output.ts"
import { noSearch, searchKeys, searchLine } from "../../src/cli/chat-search.ts"
import { findTui } from "../../src/cli/tui.ts"
import type { Entry } from "../../src/domain/entry.ts"
import type { Event, EventBody, SessionState } from "../../src/domain/event.ts"
import { ConversationId, EntryId, Seq, SubmissionId, TaskId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import type { Message } from "../../src/domain/message.ts"
import { noUsage } from "../../src/domain/usage.ts"
import { emptyLayout, lay } from "../../src/protocols/terminal/layout.ts"
import { type Block, terminalRenderer } from "../../src/protocols/terminal/renderer.ts"
import { standingLine, tailLines } from "../../src/protocols/terminal/status.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-parts-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const event = (body: EventBody): Event => ({
  ...body,
  v: 1,
  conversation_id: ConversationId.make(7),
  turn_id: null,
  timestamp_ms: 1000,
  seq_no: 1,
})

const session: SessionState = {
  conversation_id: ConversationId.make(7),
  state: "idle",
  model: "script/a",
  mode: "auto",
  harness: "super-pi-code",
  cwd: "/w",
  title: "a title",
  turn_id: null,
  partial: null,
  tools: [],
  queued: [],
  compactions: [],
  compaction_failure: null,
  questions: [],
  retry: null,
  parked: null,
  usage: { ...noUsage, input: 1200, output: 30 },
  entries: 2,
  seq_no: 9,
}

const play = (events: ReadonlyArray<Event>, details = true) => {
  let view = terminalRenderer.init({ details })
  const blocks: Array<Block> = []
  for (const one of events) {
    const [next, more] = terminalRenderer.render(view, one)
    view = next
    blocks.push(...more)
  }
  return { view, out: lay(emptyLayout, blocks, { color: false, columns: 60 }).out }
}

const started = event({
  type: "tool_started",
  task_id: TaskId.make(3),
  call_id: "c",
  name: "bash",
  arguments: { command: "make" },
})
const ended = (name: string, isError: boolean, details: JsonObject, said: string): Event =>
  event({
    type: "tool_completed",
    task_id: TaskId.make(3),
    call_id: "c",
    name,
    is_error: isError,
    output: [{ type: "text", text: said }],
    structured_output: "exitCode" in details ? { output: said } : null,
    details,
    entry_id: EntryId.make(3),
    duration_ms: 12,
  })
const code = (exitCode: number | null, more: JsonObject = {}): JsonObject => ({
  exitCode,
  signal: null,
  timedOut: false,
  ...more,
})

describe("a call in a chat", () => {
  it("shows the change that it made below its line, a long one folded", () => {
    const change = { diff: "@@ -1 +1 @@\n-old\n+new\u001b[31m\n", added: 1, removed: 1, truncated: false }
    expect(play([ended("edit", false, { change }, "Edited")]).out).toBe(
      "✓ edit (+1 -1, 12 ms)\n  @@ -1 +1 @@\n  -old\n  +new\n",
    )
    const long = { ...change, diff: Array.from({ length: 50 }, (_, at) => `+${at}\n`).join("") }
    const lines = play([ended("write", false, { change: long }, "x")])
      .out.trimEnd()
      .split("\n")
    expect(lines).toHaveLength(31)
    expect(lines.at(-1)).toBe("  … 21 more lines; /output shows them")
  })

  it("shows how a command ended, and the ends of what it said", () => {
    expect(play([started, ended("bash", false, code(0), "fine\n")]).out).toBe("✓ bash make (12 ms)\n  fine\n")
    expect(play([started, ended("bash", true, code(2), "")]).out).toBe("✗ bash make (exit 2, 12 ms)\n")
    const killed = play([ended("bash", true, code(null, { signal: "SIGKILL" }), "x")]).out
    expect(killed).toBe("✗ bash (signal SIGKILL, 12 ms)\n  x\n")
    expect(play([ended("bash", true, code(null, { timedOut: true }), "x")]).out).toContain("(timed out, 12 ms)")
    const many = Array.from({ length: 20 }, (_, at) => `line ${at}`).join("\n")
    expect(play([ended("bash", false, code(0), many)]).out.split("\n")).toEqual([
      "✓ bash (12 ms)",
      ...["  line 0", "  line 1", "  … 12 more lines; /output shows them"],
      ...[14, 15, 16, 17, 18, 19].map((at) => `  line ${at}`),
      "",
    ])
  })

  it("is one line where no details are wanted", () => {
    expect(play([started, ended("bash", true, code(2), "no rule\n")], false).out).toBe(
      "✗ bash make (exit 2, 12 ms): no rule\n",
    )
  })

  it("shows the newest lines of a command that runs, and never more", () => {
    const outputs = [1, 2, 3, 4, 5, 6].map((at) => event({ type: "tool_output", call_id: "c", delta: `line ${at}\n` }))
    const { view } = play([started, ...outputs])
    expect(tailLines(view, 80)).toEqual([3, 4, 5, 6].map((at) => `  │ line ${at}`))
    const flood = event({ type: "tool_output", call_id: "c", delta: "x".repeat(1_000_000) })
    for (const line of tailLines(play([started, flood, flood]).view, 40)) expect(line.length).toBeLessThan(40)
  })
})

describe("where a conversation stands", () => {
  it("is on one line: number, model, mode, state, tokens, cost and queue", () => {
    const joined = event({ type: "snapshot", session })
    const queued = event({
      type: "submission_updated",
      submission_id: SubmissionId.make(4),
      status: "queued",
      reason: null,
      detail: null,
    })
    const { view } = play([joined, event({ type: "mode_changed", mode: "plan" }), queued])
    expect(standingLine(view, { defaultModel: null, cost: 0.5 }, 120)).toBe(
      "conversation 7 · script/a · plan · idle · 1.2k in, 30 out · $0.5000 · 1 queued",
    )
    expect(standingLine(view, { defaultModel: null, cost: null }, 20)).toHaveLength(19)
    expect(standingLine(terminalRenderer.init({}), { defaultModel: null, cost: null }, 80)).toBeNull()
  })

  it("counts the cost of a transcript, and goes on from its events", () => {
    const prices = { "script/a": { input: 10, output: 100 } }
    const usage = { ...noUsage, input: 100_000, output: 10_000 }
    const said: Message = { role: "assistant", content: [], model: "script/a", stopReason: "stop", usage }
    const entry: Entry = {
      id: EntryId.make(1),
      conversation: ConversationId.make(7),
      kind: "pi.assistant",
      model: [said, { ...said, model: "other/model" }],
      data: null,
      head: null,
      edits: [],
      task: null,
      createdAt: 0,
      seq: Seq.make(1),
    }
    expect(costOfEntries([entry], prices)).toBe(2)
    expect(costOfEntries([entry], {})).toBeNull()
    const meter = makeMeter(prices)
    expect(meter.dollars()).toBeNull()
    meter.begin([entry])
    meter.event(event({ type: "turn_started", submission_ids: [], model: "script/a" }))
    meter.event(event({ type: "usage_updated", usage, total: usage }))
    expect(meter.dollars()).toBe(4)
  })

  it("is said at length by /status, /context and /sessions", () => {
    const beside = { defaultModel: null, dollars: 1.5, window: 200_000 }
    const status = statusLines({ ...session, queued: [SubmissionId.make(3)] }, beside)
    expect(status).toContain("conversation  7  a title")
    expect(status).toContain("cost          $1.50")
    expect(status).toContain("queue         1 queued")
    expect(contextLines(session, [], beside)).toContain("tokens       about 0 of 200.0k (0 %)")
    const row = { title: null, created_at: 0, updated_at: 0, entries: 1, busy: true, parked: null, forked_from: null }
    expect(sessionLines([{ ...row, conversation_id: ConversationId.make(7) }], 7, 0)).toEqual([
      "* 7  just now    [busy] (no title)",
    ])
  })

  it("has all that a call said, with its change, for /output", () => {
    const details = { change: { diff: "+a\n" } }
    const result = {
      role: "tool",
      callId: "c",
      toolName: "write",
      content: [{ type: "text", text: "Created\u0007" }],
      isError: false,
      details,
    } as const
    expect(outputLines(result)).toEqual(["write", "Created", "+a"])
  })
})

describe("completion", () => {
  mkdirSync(join(directory, "source"))
  writeFileSync(join(directory, "source", "one.ts"), "")
  writeFileSync(join(directory, "some.txt"), "")
  writeFileSync(join(directory, ".hidden"), "")
  const sources = {
    models: async () => ["openai/gpt-5", "anthropic/claude"],
    others: async () => ["plan", "git:log"],
    harnesses: async () => ["super-pi-code"],
    directory: () => directory,
  }
  const completed = async (line: string) => complete(await candidatesOf(line, sources))

  it("knows commands, what they take, and files", async () => {
    expect(await completed("/statu")).toEqual({ insert: "/status ", hint: [] })
    expect(await completed("/git")).toEqual({ insert: "/git:log ", hint: [] })
    expect(await completed("/model an")).toEqual({ insert: "anthropic/claude ", hint: [] })
    expect(await completed("/mode p")).toEqual({ insert: "plan ", hint: [] })
    expect(await completed("/harness s")).toEqual({ insert: "super-pi-code ", hint: [] })
    expect(await completed("look at @sour")).toEqual({ insert: "@source/", hint: [] })
    expect(await completed("@source/o")).toEqual({ insert: "@source/one.ts ", hint: [] })
    expect(await completed("@.h")).toEqual({ insert: "@.hidden ", hint: [] })
  })

  it("gives what all have in common, then names them", async () => {
    expect(await completed("@s")).toEqual({ insert: "@so", hint: [] })
    expect(await completed("@so")).toEqual({ insert: null, hint: ["@some.txt  @source/"] })
    expect((await completed("/")).hint[0]).toContain(" more")
  })

  it("leaves alone what it does not know, also paths that are not there", async () => {
    for (const line of ["hello", "/model nothing", "@nowhere/x", "mail@", "/status now"])
      expect(await completed(line)).toEqual({ insert: null, hint: [] })
  })
})

describe("the search among earlier lines", () => {
  const history = ["git push", "git status", "npm test", "git pull"]
  const typed = (keys: string) => searchKeys(noSearch, keys, history)

  it("finds the newest, then older ones, and takes what it found", () => {
    expect(typed("git")).toEqual({ kind: "search", search: { query: "git", at: 0 } })
    expect(typed("git\u0012\u0012")).toEqual({ kind: "search", search: { query: "git", at: 3 } })
    expect(typed("pul\u007f\u007fu")).toEqual({ kind: "search", search: { query: "pu", at: 0 } })
    expect(typed("npm\r")).toEqual({ kind: "take", line: "npm test", keys: "\r" })
    expect(typed("sta\u001b[C")).toEqual({ kind: "take", line: "git status", keys: "\u001b[C" })
    expect(searchLine({ query: "sta", at: 1 }, history)).toBe('search "sta": git status')
  })

  it("leaves what was typed alone where it is left or finds nothing", () => {
    for (const keys of ["git\u0007", "git\u0003", "git\u001b", "nothing\r"])
      expect(typed(keys)).toEqual({ kind: "leave" })
  })

  it("is understood whatever is typed", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.array(fc.string()), (keys, lines) => {
        expect(["search", "take", "leave"]).toContain(searchKeys(noSearch, keys, lines).kind)
      }),
    )
  })
})

describe("the model of a chat", () => {
  const options = { db: join(directory, "x.db"), env: {}, settings: {}, cwd: directory, program: "test" }

  it("is checked: one that is served is taken by its full name, another one is refused", async () => {
    const models = await Effect.runPromise(makeChatModels(options))
    expect(await Effect.runPromise(models.check("mock/echo"))).toEqual({ model: "mock/echo", warning: null })
    const refused = await Effect.runPromise(Effect.flip(models.check("nonsense")))
    expect(refused).toMatchObject({ _tag: "InvalidRequest", path: "/model" })
    expect(await Effect.runPromise(models.window("mock/echo"))).toBe(200_000)
    expect(await Effect.runPromise(models.window("nonsense"))).toBeNull()
  })

  it("may be one that the provider does not list, with a warning that names the nearest", async () => {
    const env = { OPENAI_API_KEY: "k" }
    const settings = { models: { openaiModels: ["gpt-5-mini"] } }
    const models = await Effect.runPromise(makeChatModels({ ...options, env, settings }))
    const checked = await Effect.runPromise(models.check("openai/gpt-5-mimi"))
    expect(checked.model).toBe("openai/gpt-5-mimi")
    expect(checked.warning).toContain("did you mean openai/gpt-5-mini?")
  })
})

describe("the full-screen client", () => {
  it("is an executable file in an absolute directory of the PATH, and is not started inside of itself", () => {
    const bin = join(directory, "bin")
    mkdirSync(bin)
    expect(findTui({ PATH: bin }, "linux")).toBeNull()
    writeFileSync(join(bin, "super-pi-tui"), "", { mode: 0o644 })
    expect(findTui({ PATH: `/nowhere::.:${bin}` }, "linux")).toBeNull()
    rmSync(join(bin, "super-pi-tui"))
    writeFileSync(join(bin, "super-pi-tui"), "", { mode: 0o755 })
    expect(findTui({ PATH: `/nowhere::.:${bin}` }, "linux")).toBe(join(bin, "super-pi-tui"))
    expect(findTui({ PATH: bin, SUPER_PI_RPC_SOCKET: "/x" }, "linux")).toBeNull()
    expect(findTui({ PATH: bin }, "win32")).toBeNull()
  })
})
