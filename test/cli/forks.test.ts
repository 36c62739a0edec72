/**
 * Forks, resets and the queue on the command line: real processes of the built program, and what it prints.
 */
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { queueLine } from "../../src/cli/chat-queue.ts"
import { deriveContext } from "../../src/domain/context.ts"
import { contextMarks } from "../../src/domain/context-marks.ts"
import type { EntryId } from "../../src/domain/ids.ts"
import { ConversationId, SubmissionId } from "../../src/domain/ids.ts"
import { text } from "../../src/domain/message.ts"
import { grow, modelVisible, steps } from "../domain/rules-model.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

describe("the marks of a transcript", () => {
  it("name exactly the entries that a model does not see as they are", () => {
    fc.assert(
      fc.property(steps(20), (all) => {
        const world = grow(all)
        const visible = modelVisible(world, world.length - 1)
        const marks = contextMarks(visible)
        for (const entry of visible) {
          const mark = marks.get(entry.id)
          // What the entry says is told apart by a word of its own.
          const word = `entry ${entry.id}`
          const told = visible.map((one) =>
            one.id === entry.id ? { ...one, model: [{ role: "user" as const, content: [text(word)] }] } : one,
          )
          const seen = JSON.stringify(deriveContext(told)).includes(JSON.stringify(word))
          expect(seen).toBe(mark === undefined)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it("say what hides, what replaces, and where the context begins", () => {
    const entry = (id: number, rest: { readonly head?: number; readonly omit?: number }) => ({
      id: id as EntryId,
      kind: "app.x",
      data: null,
      model: [],
      head: rest.head === undefined ? null : (rest.head as EntryId),
      edits: rest.omit === undefined ? [] : [{ type: "omit" as const, entry: rest.omit as EntryId }],
    })
    const marks = contextMarks([entry(1, {}), entry(2, { head: 2 }), entry(3, {}), entry(4, { omit: 3 })])
    expect([...marks]).toEqual([
      [1, { type: "before", by: 2 }],
      [3, { type: "omitted", by: 4 }],
    ])
  })
})

describe("a line of the queue", () => {
  const view = (kind: "input" | "write", content: object, when_busy: "followUp" | "steer" = "followUp") => ({
    submission_id: SubmissionId.make(7),
    conversation_id: ConversationId.make(1),
    status: "queued" as const,
    reason: null,
    detail: null,
    placed_entry_id: null,
    kind,
    when_busy,
    content: JSON.parse(JSON.stringify(content)),
    request_id: null,
    created_at: 0,
  })

  it("says what waits, and lets nothing of it reach the terminal raw", () => {
    expect(queueLine(view("input", { content: [text("fix\nthe \u001b[2Jtest")] }))).toBe("7  prompt  fix the test")
    expect(queueLine(view("input", { content: [text("no")] }, "steer"))).toBe("7  steer  no")
    expect(queueLine(view("write", { kind: "pi.reset", model: [] }))).toBe("7  reset")
    expect(queueLine(view("write", { kind: "app.note", model: [] }))).toBe("7  write  app.note")
  })
})

describe("the commands", () => {
  let bench: Bench
  const echo = ["--model", "mock/echo"]
  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
  })
  afterAll(() => bench.remove())

  const ask = async (prompt: string, ...more: ReadonlyArray<string>) => {
    const { stdout } = await bench.run(["run", prompt, ...echo, "--output-format", "json", ...more])
    return JSON.parse(stdout) as { readonly conversation_id: number; readonly text: string }
  }

  it("fork a conversation at an entry that session show names, and go on there", async () => {
    const { conversation_id: root } = await ask("first")
    await ask("second", "--conversation", String(root))
    const shown = (await bench.run(["session", "show", String(root)])).stdout
    const at = /#(\d+)\nYou said: first/.exec(shown)?.[1] ?? ""
    const forked = await bench.run(["session", "fork", String(root), "--at", at])
    expect([forked.code, forked.stderr]).toEqual([0, ""])
    const id = /^conversation (\d+) is a fork of/.exec(forked.stdout)?.[1] ?? ""
    await ask("third", "--conversation", id)
    const child = (await bench.run(["session", "show", id])).stdout
    expect(child).toContain(`forked from conversation ${root} at #${at}`)
    expect(child).toMatch(new RegExp(`#\\d+ · from conversation ${root}\\n> first`))
    expect(child).toMatch(/#\d+\n> third/)
    expect(child).not.toContain("second")
    const { stdout } = await bench.run(["session", "fork", String(root), "--json"])
    expect(JSON.parse(stdout)).toMatchObject({ state: "idle" })
    expect(await bench.run(["session", "fork", String(root), "--at", "999999"])).toMatchObject({
      code: 1,
      stderr: `super-pi: entryId: expected an entry that conversation ${root} sees, got 999999\n`,
    })
    expect((await bench.run(["session", "fork", String(root), "--at", "x"])).code).toBe(2)
  })

  it("reset a conversation, and show what is not sent any more", async () => {
    const { conversation_id: id } = await ask("old story")
    const reset = await bench.run(["session", "reset", String(id), "--handoff", "go on here"])
    expect(reset).toMatchObject({
      code: 0,
      stdout: `conversation ${id} goes on in a new context, from the note\n`,
      stderr: "",
    })
    const { stdout } = await bench.run(["session", "show", String(id)])
    expect(stdout).toMatch(/#\d+ · before the context that #(\d+) begins\n> old story[\s\S]*#\1\n> go on here/)
  })

  it("fork, reset and list the queue in a chat", async () => {
    const { code, stderr, stdout } = await bench.run(["chat", ...echo], {
      input: "one\n/reset fresh start\n/queue\n/fork\ntwo\n/queue 7x\n",
    })
    expect(stderr).toBe("")
    expect(stdout).toContain("a new context begins")
    expect(stdout).toContain("nothing is queued")
    expect(new Set([...stdout.matchAll(/conversation (\d+)/g)].map((one) => one[1])).size).toBe(2)
    expect(stdout).toMatch(/You said: fresh start\s*two/)
    expect(stdout).toContain('/queue: expected the number of what is queued, got "7x"')
    expect(code).toBe(1)
  })
})
