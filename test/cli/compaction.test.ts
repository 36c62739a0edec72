/**
 * Compaction as a person meets it at the command line: real processes of the built program.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bench, buildProgram, makeBench } from "./program.ts"

describe("super-pi session compact", () => {
  let bench: Bench

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    const summary = {
      match: "^Summarise .*special attention to this: the ports",
      steps: [{ text: "## State\nport 8080" }],
    }
    const wish = { match: "^Summarise", steps: [{ status: 400, message: "no wish came" }] }
    const answer = { match: "", steps: [{ text: "word ".repeat(2_000) }] }
    bench.write("script.json", JSON.stringify({ rules: [summary, wish, answer] }))
    Object.assign(bench.env, {
      SUPER_PI_SCRIPT: join(bench.directory, "script.json"),
      SUPER_PI_DEFAULT_MODEL: "script/test",
    })
  }, 120_000)

  afterAll(() => bench.remove())

  it("makes a conversation short, says so, and shows it in the transcript", { timeout: 120_000 }, async () => {
    const first = JSON.parse((await bench.run(["run", "one", "--output-format", "json"])).stdout)
    const id = String(first.conversation_id)
    await bench.run(["run", "two", "--conversation", id])

    const refused = await bench.run(["session", "compact", id])
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/Compaction failed: .*no wish came/)

    const done = await bench.run(["session", "compact", id, "--instructions", "the ports"])
    expect(done).toMatchObject({ code: 0, stderr: "" })
    expect(done.stdout).toMatch(/^compacted: about \d.* tokens are \d.* now\n$/)
    expect((await bench.run(["session", "show", id])).stdout).toContain("[the context was compacted here]")
    expect((await bench.run(["session", "export", id])).stdout).toContain("## Compaction")

    const again = await bench.run(["run", "three", "--conversation", id, "--output-format", "json"])
    expect(JSON.parse(again.stdout)).toMatchObject({ is_error: false })

    const chat = await bench.run(["chat", "--conversation", id], { input: "/compact the ports\n/exit\n" })
    expect(chat.code).toBe(0)

    const nobody = await bench.run(["session", "compact", "99"])
    expect(nobody).toMatchObject({ code: 1, stderr: expect.stringMatching(/conversation 99 was not found/) })
  })
})
