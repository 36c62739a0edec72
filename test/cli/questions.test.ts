/**
 * A permission as it is given at the command line and over JSON-RPC: real processes of the built program, one of them killed while it asks.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ListedQuestion } from "../../src/domain/question.ts"
import { connect, type LineClient } from "../protocols/line-client.ts"
import { type Bench, buildProgram, makeBench, type Running } from "./program.ts"

/** One event of a watch, loosely typed. */
type Seen = { readonly type: string; readonly [key: string]: unknown }

describe("super-pi questions, beside a JSON-RPC client", () => {
  let bench: Bench

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    const tools = [{ name: "bash", args: { command: "touch made-by-the-call" } }]
    bench.write("asks.json", JSON.stringify({ rules: [{ match: "^go$", steps: [{ tools }, { text: "done" }] }] }))
  })

  afterAll(() => bench.remove())

  const env = () => ({
    SUPER_PI_SCRIPT: join(bench.directory, "asks.json"),
    SUPER_PI_DEFAULT_MODEL: "script/test",
  })
  const list = async (): Promise<ReadonlyArray<ListedQuestion>> =>
    JSON.parse((await bench.run(["questions", "--json"])).stdout)
  const serve = async (name: string): Promise<{ readonly server: Running; readonly client: LineClient }> => {
    const path = join(bench.directory, name)
    const server = bench.start(["rpc", "--unix", path], { env: env() })
    await server.until(/./, "stderr")
    return { server, client: await connect(path) }
  }
  /** The first event that satisfies `match`, acknowledging what comes. */
  const event = async (client: LineClient, match: (seen: Seen) => boolean): Promise<Seen> => {
    for (;;) {
      const line = await client.next()
      if (line === null) throw new Error("the connection ended")
      if (line.params === undefined) continue
      const { delivery, events, watchId } = line.params
      await client.request("session.ack", { watchId, delivery })
      const found = (events as ReadonlyArray<Seen>).find(match)
      if (found !== undefined) return found
    }
  }

  it("asks, survives the death of its process, and takes one answer", { timeout: 120_000 }, async () => {
    expect((await bench.run(["questions"])).stdout).toBe("no question is open\n")

    const first = await serve("one.sock")
    const agent = { mode: "accept-edits", cwd: bench.directory }
    const opened = await first.client.request("session.open", { agent, requestId: "open" })
    const conversationId = opened.result?.conversation_id
    await first.client.request("session.watch", { conversationId, interactive: true })
    await first.client.request("session.submit", { conversationId, content: "go", requestId: "turn" })
    const asked = await event(first.client, ({ type }) => type === "permission_request")
    expect(asked).toMatchObject({ tool: "bash", arguments: { command: "touch made-by-the-call" } })
    first.server.child.kill("SIGKILL")
    await first.server.ended

    const [open, ...more] = await list()
    expect(more).toEqual([])
    expect(open).toMatchObject({ conversation_id: conversationId, question: { question_id: asked.question_id } })
    expect((await bench.run(["questions"])).stdout).toMatch(/1\) Allow once/)

    const second = await serve("two.sock")
    await second.client.request("session.watch", { conversationId, interactive: true })
    const snapshot = await event(second.client, ({ type }) => type === "snapshot")
    expect(snapshot).toMatchObject({ session: { questions: [{ question_id: asked.question_id }] } })
    const wrong = await bench.run(["questions", "answer", String(asked.question_id), "maybe"], { env: env() })
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      'super-pi: OPTION: expected a number from 1 to 4, y or n, got "maybe"\n',
    ])
    const answered = await bench.run(["questions", "answer", String(asked.question_id), "1"], { env: env() })
    expect(answered).toMatchObject({ code: 0, stdout: expect.stringMatching(/is answered: allow_once\n$/) })
    const settled = await event(second.client, ({ type }) => type === "question_settled")
    expect(settled).toMatchObject({ result: "allowed", by: "local, super-pi questions" })
    const late = await second.client.request("ui.respond", { questionId: asked.question_id, answer: "reject_once" })
    expect(late.error).toMatchObject({ code: -32003, data: { rule: "question_settled" } })
    expect(late.error?.message).toMatch(/was answered with allow_once by local, super-pi questions/)
    const done = await event(second.client, ({ type }) => type === "tool_completed")
    expect(done).toMatchObject({ is_error: false })
    expect(await list()).toEqual([])
    second.client.destroy()
    second.server.child.kill("SIGTERM")
    await second.server.ended
  })
})
