/**
 * A run that killed its process too often, as a person meets it at the command line: real processes of the built program.
 */
import { join } from "node:path"
import Database from "better-sqlite3"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { restartLimit } from "../../src/domain/task.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
  bench.write("deadly.json", JSON.stringify({ rules: [{ match: "", steps: [{ text: "I begin", hang: true }] }] }))
  bench.write("healthy.json", JSON.stringify({ rules: [{ match: "", steps: [{ text: "An answer." }] }] }))
})

afterAll(() => bench.remove())

const scripted = (file: string) => ({
  SUPER_PI_SCRIPT: join(bench.directory, file),
  SUPER_PI_DEFAULT_MODEL: "script/test",
})

/** A conversation whose run was killed once, in a database that says it was nearly the last time. */
const nearlyParked = async (): Promise<string> => {
  const run = bench.start(["run", "go", "--output-format", "stream-json"], { env: scripted("deadly.json") })
  await run.until(/text_delta/)
  run.child.kill("SIGKILL")
  const { stdout } = await run.ended
  const db = new Database(join(bench.directory, "data", "super-pi.db"))
  db.prepare("UPDATE tasks SET crashes = ? WHERE status = 'running'").run(restartLimit - 1)
  db.close()
  return String(JSON.parse(stdout.split("\n")[0] ?? "").conversation_id)
}

describe("a parked run", () => {
  it("fails a prompt with one line that says how to go on, is shown by session, and answers after /retry", async () => {
    const id = await nearlyParked()
    const run = await bench.run(["run", "more", "--conversation", id], { env: scripted("healthy.json") })
    expect([run.code, run.stdout]).toEqual([1, ""])
    expect(run.stderr).toMatch(
      /^super-pi: the prompt waits behind a run that is parked \(restart_limit: .*\): retry .*; type \/retry or \/cancel in: super-pi chat --conversation \d+ \(session\.retry and session\.cancel over JSON-RPC\)\n$/,
    )

    expect((await bench.run(["session", "list"])).stdout).toContain("[parked] go")
    const [summary] = JSON.parse((await bench.run(["session", "list", "--json"])).stdout)
    expect(summary.parked).toContain("restart_limit")
    expect((await bench.run(["session", "show", id])).stdout).toMatch(/the run is parked \(restart_limit.*\/retry/)
    expect(JSON.parse((await bench.run(["session", "show", id, "--json"])).stdout).parked).toContain("restart_limit")

    const input = "/retry\n/retry\n"
    const chat = await bench.run(["chat", "--conversation", id], { input, env: scripted("healthy.json") })
    expect([chat.code, chat.stderr]).toEqual([0, ""])
    expect(chat.stdout).toMatch(/the run is parked .*\/retry runs it again, \/cancel ends it/)
    expect(chat.stdout).toMatch(/An answer\.\n(.*\n)*An answer\.\nnothing is parked\n$/)
    expect((await bench.run(["session", "list"])).stdout).not.toContain("parked")
  })

  it("fails a chat from a pipe whose prompts nobody answers, and ends with /cancel", async () => {
    const id = await nearlyParked()
    const chat = await bench.run(["chat", "--conversation", id], {
      input: "more\n/status\n/cancel\n",
      env: scripted("healthy.json"),
    })
    expect(chat.code).toBe(1)
    expect(chat.stdout).toContain("the prompt waits behind a run that is parked")
    expect(chat.stdout).toMatch(/^state +idle, the run is parked .*$/m)
    expect(chat.stdout).toMatch(/^queue +1 queued$/m)
    expect((await bench.run(["session", "list"])).stdout).not.toMatch(/parked|busy/)
  })
})
