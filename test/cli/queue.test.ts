/**
 * `super-pi queue` as a person runs it: without a node, beside one, and against mistakes.
 */
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { JobId } from "../../src/domain/ids.ts"
import { job } from "../../src/storage/conformance/records.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench
let db: string

/** A database with a job of a queue that no node here has, and one that is due in a day. */
beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
  db = join(bench.directory, "queue.db")
  await Effect.runPromise(
    Effect.scoped(
      Effect.gen(function* () {
        const store = yield* makeSqliteStore({ path: db })
        yield* store.mint("job", 2)
        const later = Date.now() + 86_400_000
        yield* store.commit({
          jobs: [
            job(1 as JobId, { queue: "mail", worker: "send", args: { to: "ann" } }),
            job(2 as JobId, { queue: "verification", worker: "check", runAt: later }),
          ],
        })
      }),
    ),
  )
})

afterAll(() => bench.remove())

const queue = (...words: ReadonlyArray<string>) => bench.run(["queue", ...words, "--db", db])
const json = async (...words: ReadonlyArray<string>) => JSON.parse((await queue(...words, "--json")).stdout)

describe("super-pi queue", () => {
  it("lists queues and jobs while no node runs, and says that they wait", async () => {
    const { code, stdout, stderr } = await queue("list")
    expect(code).toBe(0)
    expect(stdout).toMatch(/^mail +0 executing, 1 available {2}due now$/m)
    expect(stdout).toMatch(/^verification +0 executing, 1 available {2}next in (23|24) h$/m)
    expect(stdout).toMatch(/^1 {2}available {2}mail\/send {2}attempt 0\/3/m)
    expect(stderr).toBe("no node is running on this database: its jobs wait\n")
  })

  it("shows a job with what it is about", async () => {
    expect((await queue("show", "1")).stdout).toContain('arguments     {"to":"ann"}')
    expect(await json("show", "1")).toMatchObject({ id: 1, queue: "mail", state: "available" })
    expect(await queue("show", "9")).toMatchObject({
      code: 1,
      stderr: "super-pi: job 9 was not found; see: super-pi queue list\n",
    })
  })

  it("changes queues and jobs by owning the database for a moment", async () => {
    expect((await queue("pause", "verification")).stdout).toBe(
      "verification is paused: running jobs end, no other starts\n",
    )
    expect((await queue("list")).stdout).toMatch(/^verification .*paused/m)
    expect((await queue("resume", "verification")).stdout).toBe("verification is resumed\n")
    expect((await queue("cancel", "2")).stdout).toBe("job 2 is cancelled\n")
    expect((await queue("cancel", "2")).stderr).toContain("job 2 is cancelled already")
    expect((await queue("retry", "1")).stdout).toBe("job 1 is available\n")
    expect(await json("prune")).toMatchObject({ pruned: 1 })
    expect((await json("list")).jobs.map((one: { id: number }) => one.id)).toEqual([1])
  })

  it("asks the node that runs, which knows its workers", async () => {
    const node = bench.start(["rpc", "--unix", join(bench.directory, "rpc.sock"), "--db", db])
    await node.until(/listening|rpc\.sock/, "stderr")
    const { queues } = await json("list")
    const of = (name: string) => queues.find((one: { queue: string }) => one.queue === name)
    expect(of("generation_retry")).toMatchObject({ concurrency: 10, workers: ["wake"] })
    expect(of("mail")).toMatchObject({ concurrency: null, workers: [], counts: { available: 1 } })
    expect((await queue("list")).stdout).toMatch(/^schedule_tick +0\/1 executing, 0 available {2}no workers/m)
    expect((await queue("pause", "verification")).stdout).toContain("is paused")
    expect((await bench.run(["tree", "--db", db])).stdout).toMatch(/verification.*0\/1 running, paused/)
    node.child.kill("SIGTERM")
    await node.ended
  })

  it("names mistakes", async () => {
    expect(await queue("show", "x")).toMatchObject({ code: 2 })
    const unknown = await queue("pause", "verificaton")
    expect(unknown.code).toBe(1)
    expect(unknown.stderr).toContain('got "verificaton"')
    expect((await queue("retry", "99")).stderr).toContain("job 99 was not found")
  })
})
