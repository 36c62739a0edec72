/**
 * `super-pi tasks` as a person meets it: a workflow that an application left, listed, shown, retried and given up by processes that lack its code.
 */
import { join } from "node:path"
import { Effect, Layer, Logger, Schema } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { ActorSystem } from "../../src/actors/kernel/index.ts"
import { defineTask, Step, Tasks } from "../../src/actors/task/index.ts"
import { SqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store } from "../../src/storage/store.ts"
import { tasksLayer } from "../../src/supervisors/tasks.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

const Step1 = Schema.Struct({ phase: Schema.Literal("rest") })
const shared = { version: 1, input: Schema.Null, result: Schema.Null, initial: () => ({ phase: "rest" as const }) }

const Child = defineTask({
  ...{ ...shared, kind: "shop.child", checkpoint: Schema.Union(Step1, Schema.Struct({ phase: Schema.Literal("up") })) },
  phases: {
    rest: () => Effect.succeed(Step.sleep({ ms: 86_400_000 }, { phase: "up" })),
    up: () => Effect.succeed(Step.complete(null)),
  },
})

const Parent = defineTask({
  ...{
    ...shared,
    kind: "shop.parent",
    checkpoint: Schema.Union(Step1, Schema.Struct({ phase: Schema.Literal("up") })),
  },
  phases: {
    rest: (_task, runtime) =>
      Effect.map(runtime.spawn(Child, null), (child) => Step.wait({ on: [child] }, { phase: "up" })),
    up: () => Effect.succeed(Step.complete(null)),
  },
})

describe("super-pi tasks", () => {
  let bench: Bench
  let db: string

  /** An application that leaves a parent that waits and a child that sleeps, and a task that is parked. */
  const application = Effect.gen(function* () {
    const tasks = yield* Tasks
    yield* tasks.register(Child)
    yield* tasks.register(Parent)
    const id = yield* tasks.start(Parent, null)
    const left = () => Effect.map(tasks.graphNow, (graph) => [...graph.values()].map(({ status }) => status).join())
    yield* Effect.repeat(Effect.zipRight(Effect.yieldNow(), left()), { until: (now) => now === "waiting,sleeping" })
    const store = yield* Store
    const row = yield* store.task(id)
    const [parked] = yield* store.mint("task", 1)
    if (row === null || parked === undefined) return yield* Effect.dieMessage("no row")
    const { seq: _, ...base } = row
    yield* store.commit({
      tasks: [
        {
          ...base,
          id: parked,
          kind: "shop.broken",
          status: "pending",
          waitingOn: null,
          crashes: 5,
          parked: "it crashed",
        },
      ],
    })
  })

  beforeAll(async () => {
    bench = makeBench()
    db = join(bench.directory, "shop.db")
    await buildProgram()
    const services = tasksLayer().pipe(
      Layer.provide(ActorSystem.layer()),
      Layer.provideMerge(SqliteStore.layer({ path: db })),
    )
    const quiet = Logger.remove(Logger.defaultLogger)
    await Effect.runPromise(application.pipe(Effect.provide(services), Effect.provide(quiet)))
  })

  afterAll(() => bench.remove())

  const run = async (...words: ReadonlyArray<string>) => {
    const { code, stderr, stdout } = await bench.run(["tasks", ...words, "--db", db])
    return { code, stderr, lines: stdout.trimEnd().split("\n") }
  }

  it("lists the tree, shows one task, and says what is wrong with an id", async () => {
    const listed = await run("list")
    expect(listed.lines).toEqual([
      expect.stringMatching(/^1 {2}shop\.parent {2}waiting for 2 {2}/),
      expect.stringMatching(/^ {2}2 {2}shop\.child {2}sleeping until 20..-.*Z {2}/),
      expect.stringMatching(/^\d+ {2}shop\.broken {2}parked: it crashed {2}/),
    ])
    const shown = await run("show", "1")
    expect(shown.lines[0]).toBe("task 1: shop.parent version 1")
    expect(shown.lines).toContain('  checkpoint {"phase":"up"}')
    expect(shown.lines.at(-1)).toContain("shop.child")
    expect(await run("show", "77")).toMatchObject({ code: 1, stderr: expect.stringContaining("task 77 was not found") })
    expect(await run("show", "x")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('expected a task number, got "x"'),
    })
    const json = JSON.parse((await run("list", "--json")).lines[0] ?? "")
    expect(json.map((task: { readonly kind: string }) => task.kind)).toEqual([
      "shop.parent",
      "shop.child",
      "shop.broken",
    ])
  })

  it("retries a parked task and gives up tasks whose code is nowhere, owning the database for a moment", async () => {
    const parked = JSON.parse((await run("list", "--json")).lines[0] ?? "").at(-1).id
    expect(await run("retry", String(parked))).toMatchObject({ code: 0, lines: [`task ${parked} is pending`] })
    expect(await run("retry", String(parked))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("expected a parked task, got one that is pending"),
    })
    expect((await run("discard", String(parked))).lines).toEqual([`task ${parked} is ended`])
    expect((await run("abort", "1")).lines).toEqual(["task 1 is completing, being aborted"])
    for (const id of ["2", "1"]) await run("discard", id)
    expect((await run("list")).lines).toEqual(["no task is open"])
    expect((await run("show", "1")).lines[1]).toMatch(/^ {2}orphaned: /)
  })
})
