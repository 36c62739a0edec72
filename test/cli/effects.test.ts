/**
 * Effects in doubt and artifacts as a person meets them at the command line: real processes of the built program.
 */
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { effectLines } from "../../src/cli/effects.ts"
import type { EffectView } from "../../src/domain/effect.ts"
import { ConversationId, TaskId } from "../../src/domain/ids.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

describe("the listing of effects", () => {
  const view: EffectView = {
    task_id: TaskId.make(12),
    conversation_id: ConversationId.make(3),
    state: "in_doubt",
    tool: "pay",
    call_id: "c1",
    arguments: { amount: 100 },
    effect_id: "0198c0de-0000-7000-8000-000000000000",
    started_at: 0,
    ended_at: 60_000,
    why: "The call was interrupted.\u001b[31m",
  }

  it("says of each what it is, why, and its key, without control characters", () => {
    expect(effectLines([view], 120_000, null)).toEqual([
      '12  in doubt  1 min ago  conversation 3  pay {"amount":100}',
      "    The call was interrupted.",
      "    key 0198c0de-0000-7000-8000-000000000000",
    ])
  })

  it("fits the columns of a terminal", () => {
    for (const line of effectLines([view], 120_000, 30)) expect(line.length).toBeLessThanOrEqual(29)
  })
})

describe("super-pi effects and artifacts", () => {
  let bench: Bench

  beforeAll(async () => {
    bench = makeBench()
    await buildProgram()
    const keep = [{ name: "artifact_put", args: { name: "notes.md", content: "# Notes" } }]
    const tools = [{ name: "bash", args: { command: "echo begun; sleep 600" } }]
    const pays = { match: "^go$", steps: [{ text: "I pay", tools }, { text: "hm" }] }
    bench.write(
      "pays.json",
      JSON.stringify({
        rules: [
          pays,
          { match: "^keep$", steps: [{ tools: keep }, { text: "kept" }] },
          { match: "", steps: [{ text: "well" }] },
        ],
      }),
    )
  })

  afterAll(() => bench.remove())

  const scripted = () => ({
    SUPER_PI_SCRIPT: join(bench.directory, "pays.json"),
    SUPER_PI_DEFAULT_MODEL: "script/test",
  })
  const list = async (...args: ReadonlyArray<string>): Promise<ReadonlyArray<EffectView>> =>
    JSON.parse((await bench.run(["effects", ...args, "--json"])).stdout)

  it("keeps what a run put, lists it and writes it out byte for byte", async () => {
    const { stdout } = await bench.run(["run", "keep", "--output-format", "json"], { env: scripted() })
    const id = String(JSON.parse(stdout).conversation_id)
    expect((await bench.run(["session", "artifacts", id])).stdout).toBe("notes.md  text/markdown  7 bytes  just now\n")
    expect((await bench.run(["session", "artifacts", id, "--get", "notes.md"])).stdout).toBe("# Notes")
    const missing = await bench.run(["session", "artifacts", id, "--get", "other"])
    expect([missing.code, missing.stderr]).toEqual([
      1,
      `super-pi: conversation ${id} has no artifact "other"; see: super-pi session artifacts ${id}\n`,
    ])
  })

  it("lists a call from its death on, until somebody says what became of it", { timeout: 120_000 }, async () => {
    expect((await bench.run(["effects"])).stdout).toBe("no effect is in doubt\n")

    const run = bench.start(["run", "go", "--output-format", "stream-json", "--mode", "auto"], { env: scripted() })
    await run.until(/tool_output/)
    expect(await list()).toEqual([])
    expect(await list("list", "--all")).toMatchObject([{ state: "running", tool: "bash" }])
    run.child.kill("SIGKILL")
    await run.ended

    const [cutOff] = await list()
    expect(cutOff).toMatchObject({ state: "cut_off", tool: "bash", why: expect.stringContaining("nobody has taken") })
    const doctor = JSON.parse((await bench.run(["doctor", "--json"])).stdout)
    const check = doctor.checks.find((one: { name: string }) => one.name === "effects")
    expect(check).toMatchObject({ status: "warn", detail: "1 effect is in doubt" })

    const id = String(cutOff?.task_id)
    const wrong = await bench.run(["effects", "settle", id, "maybe"])
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      'super-pi: ANSWER: expected one of happened, not-happened, ignore, got "maybe"\n',
    ])
    // Whoever opens the database takes the call up: it is in doubt from then on.
    await bench.run(["run", "and?", "-c"], { env: scripted() })
    const [doubt] = await list()
    expect(doubt).toMatchObject({ state: "in_doubt", task_id: cutOff?.task_id, effect_id: cutOff?.effect_id })
    expect((await bench.run(["effects"])).stdout).toMatch(/^ *\d+ {2}in doubt .*bash echo begun; sleep 600\n/)

    const settled = await bench.run(["effects", "settle", id, "happened"], { env: scripted() })
    expect(settled).toMatchObject({ code: 0, stdout: expect.stringMatching(/is settled: happened\n$/) })
    expect(await list()).toEqual([])
    const again = await bench.run(["effects", "settle", id, "happened"], { env: scripted() })
    expect(again.code).toBe(0)
    const other = await bench.run(["effects", "settle", id, "not-happened"], { env: scripted() })
    expect([other.code, other.stderr]).toEqual([
      1,
      `super-pi: taskId: expected a call that is in doubt, got one settled as happened (${id})\n`,
    ])
    const gone = await bench.run(["effects", "settle", "999999", "ignore"], { env: scripted() })
    expect([gone.code, gone.stderr]).toEqual([1, "super-pi: call 999999 was not found\n"])
  })
})
