/**
 * The task engine through its service, as an application sees it: definitions, results, waits over restarts, versions, refusals.
 */
import { Context, Deferred, Effect, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { describe, expect, it } from "vitest"
import { defineTask, Step, Tasks } from "../../../src/actors/task/index.ts"
import { TaskId } from "../../../src/domain/ids.ts"
import { restartLimit } from "../../../src/domain/task.ts"
import { applyGraphEvent, type TaskGraph } from "../../../src/domain/task-graph.ts"
import { type MemoryDatabase, makeMemoryStore, memoryDatabase } from "../../../src/storage/memory/store.ts"
import { live, nodeOn, run } from "./harness.ts"
import { Life } from "./lives.ts"

const count = defineTask({
  kind: "test.count",
  version: 1,
  input: Schema.Struct({ to: Schema.Number }),
  checkpoint: Schema.Union(Schema.Struct({ phase: Schema.Literal("count"), at: Schema.Number })),
  result: Schema.Number,
  initial: () => ({ phase: "count" as const, at: 0 }),
  phases: {
    count: (task) =>
      Effect.succeed(
        task.checkpoint.at >= task.input.to
          ? Step.complete(task.checkpoint.at)
          : Step.next({ phase: "count" as const, at: task.checkpoint.at + 1 }),
      ),
  },
})

/** Waits until it is told to go on. */
const gated = (gate: Effect.Effect<void>, version = 1, migrate = false) =>
  defineTask({
    kind: "test.gate",
    version,
    input: Schema.Struct({ name: Schema.String }),
    checkpoint: Schema.Union(
      Schema.Struct({ phase: Schema.Literal("wait"), version: Schema.Number }),
      Schema.Struct({ phase: Schema.Literal("old") }),
    ),
    result: Schema.String,
    error: Schema.Struct({ code: Schema.Number }),
    initial: () => ({ phase: "wait" as const, version }),
    ...(migrate
      ? {
          migrate: (stored) => ({ input: stored.input, checkpoint: { phase: "wait", version } }),
        }
      : {}),
    phases: {
      wait: ({ checkpoint, input }) => Effect.as(gate, Step.complete(`${input.name} by ${checkpoint.version}`)),
      old: () => Effect.fail({ code: 7 }),
    },
  })

const row = (database: MemoryDatabase, id: TaskId) => {
  const found = database.records.tasks.get(id)
  if (found === undefined) throw new Error(`no task ${id}`)
  return found
}

describe("a task", () => {
  it("runs its phases to the end and gives its typed result", () =>
    run(
      live(memoryDatabase(), (tasks) =>
        Effect.gen(function* () {
          yield* tasks.register(count)
          const id = yield* tasks.start(count, { to: 3 })
          expect(yield* tasks.outcome(count, id)).toEqual({ status: "completed", result: 3 })
          expect((yield* tasks.state(id)).task).toMatchObject({ status: "terminal", node: null, crashes: 0 })
        }),
      ),
    ))

  it("uses the services that were there when its definition was registered", () => {
    class Greeting extends Context.Tag("Greeting")<Greeting, string>() {}
    const greet = defineTask({
      ...{ kind: "test.greet", version: 1, input: Schema.Null, result: Schema.String },
      checkpoint: Schema.Union(Schema.Struct({ phase: Schema.Literal("greet") })),
      initial: () => ({ phase: "greet" as const }),
      phases: { greet: () => Effect.map(Greeting, (greeting) => Step.complete(greeting)) },
    })
    const program = Effect.gen(function* () {
      const tasks = yield* Tasks
      yield* tasks.register(greet)
      return yield* tasks.outcome(greet, yield* tasks.start(greet, null))
    })
    const services = Layer.merge(nodeOn(memoryDatabase()), Layer.succeed(Greeting, "hello"))
    return run(
      Effect.map(Effect.provide(program, services), (outcome) =>
        expect(outcome).toEqual({ status: "completed", result: "hello" }),
      ),
    )
  })

  it.each([
    ["a typed failure", () => Effect.fail({ code: 7 }), { status: "failed", error: { code: 7 } }],
    ["a defect", () => Effect.dieMessage("a bug"), { status: "faulted", error: expect.stringContaining("a bug") }],
    ["an interruption of its own", () => Effect.interrupt, { status: "faulted", error: "interrupted" }],
    [
      "a result that does not fit",
      () => Effect.succeed(Step.complete(7 as unknown as string)), // what untyped code does
      { status: "faulted", error: "result: Expected string, actual 7" },
    ],
    [
      "rows that the store refuses",
      () =>
        Effect.succeed(
          Step.complete("x", { conversationUpdates: [{ id: 99 as never, updatedAt: 1 }] }), // nobody has it
        ),
      { status: "faulted", error: expect.stringContaining("conversation 99: it does not exist") },
    ],
  ])("that ends in %s says so", (_name, body, outcome) => {
    const definition = defineTask({
      ...{ kind: "test.end", version: 1, input: Schema.Null, result: Schema.String },
      error: Schema.Struct({ code: Schema.Number }),
      checkpoint: Schema.Union(Schema.Struct({ phase: Schema.Literal("only") })),
      initial: () => ({ phase: "only" as const }),
      phases: { only: body },
    })
    return run(
      live(memoryDatabase(), (tasks) =>
        Effect.gen(function* () {
          yield* tasks.register(definition)
          expect(yield* tasks.wait(yield* tasks.start(definition, null))).toMatchObject(outcome)
        }),
      ),
    )
  })

  it("is the same task for the same request, at once, after its end and after a restart", () => {
    const database = memoryDatabase()
    const start = live(database, (tasks) =>
      Effect.gen(function* () {
        yield* tasks.register(count)
        const [one, two] = yield* Effect.all([1, 2].map(() => tasks.start(count, { to: 1 }, { requestId: "r" })))
        expect(two).toBe(one)
        yield* tasks.wait(one ?? TaskId.make(1))
        expect(yield* tasks.start(count, { to: 9 }, { requestId: "r" })).toBe(one)
        return one
      }),
    )
    return run(
      Effect.gen(function* () {
        expect(yield* start).toBe(yield* start)
        expect(database.records.tasks.size).toBe(1)
      }),
    )
  })

  it("refuses an input that does not fit, a kind that is not registered, and a conversation that is not there", () =>
    run(
      live(memoryDatabase(), (tasks) =>
        Effect.gen(function* () {
          expect(yield* Effect.flip(tasks.start(count, { to: 1 }))).toMatchObject({
            _tag: "InvalidRequest",
            path: "kind",
          })
          yield* tasks.register(count)
          const wrong = { to: "three" as unknown as number } // what untyped code does
          expect((yield* Effect.flip(tasks.start(count, wrong))).message).toMatch(/^input\.to: expected .*three/)
          const nowhere = yield* Effect.flip(tasks.start(count, { to: 1 }, { conversation: 9 as never })) // nobody has it
          expect(nowhere.message).toContain("conversation 9: it does not exist")
          expect(yield* Effect.flip(tasks.wait(TaskId.make(9)))).toMatchObject({ _tag: "NotFound", what: "task 9" })
          expect(yield* Effect.flip(tasks.retry(TaskId.make(9)))).toMatchObject({ _tag: "NotFound" })
        }),
      ),
    ))
})

describe("a wait", () => {
  it("goes on after a restart of the node, and a clean stop counts no crash", () => {
    const database = memoryDatabase()
    return run(
      Effect.gen(function* () {
        const id = yield* live(database, (tasks) =>
          Effect.gen(function* () {
            const begun = yield* Deferred.make<void>()
            const gate = gated(Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never))
            yield* tasks.register(gate)
            const started = yield* tasks.start(gate, { name: "it" })
            yield* Deferred.await(begun)
            return started
          }),
        )
        expect(row(database, id)).toMatchObject({ status: "pending", node: null, crashes: 0 })
        const outcome = yield* live(database, (tasks) =>
          Effect.gen(function* () {
            const waiting = yield* Effect.fork(tasks.wait(id))
            yield* tasks.register(gated(Effect.void))
            return yield* Fiber.join(waiting)
          }),
        )
        expect(outcome).toEqual({ status: "completed", result: "it by 1" })
        expect(row(database, id).crashes).toBe(0)
      }),
    )
  })

  it("for a parked task fails at once, and whoever waits when it is parked is told; a retry runs it", () => {
    const database = memoryDatabase()
    return run(
      Effect.gen(function* () {
        for (let crash = 0; crash < restartLimit; crash++) {
          const life = new Life({ at: "effect", n: 1, when: "before" })
          yield* life.run(database, (tasks) =>
            Effect.gen(function* () {
              const gate = gated(life.effect(() => {}))
              yield* tasks.register(gate)
              yield* tasks.wait(yield* tasks.start(gate, { name: "it" }, { requestId: "r" }))
            }),
          )
        }
        yield* live(database, (tasks) =>
          Effect.gen(function* () {
            const id = TaskId.make(1)
            const waiting = yield* Effect.fork(Effect.flip(tasks.wait(id)))
            yield* tasks.register(gated(Effect.void))
            expect(yield* Fiber.join(waiting)).toMatchObject({ _tag: "TaskParked", id })
            expect((yield* Effect.flip(tasks.wait(id))).message).toMatch(
              /^task 1 is parked \(restart_limit: 5 unclean ends/,
            )
            expect(row(database, id)).toMatchObject({ status: "pending", crashes: restartLimit })
            yield* tasks.retry(id)
            expect(yield* tasks.wait(id)).toMatchObject({ status: "completed" })
          }),
        )
      }),
    )
  })
})

describe("code and stored tasks", () => {
  /** A task that was left running by version 1. */
  const left = (database: MemoryDatabase) =>
    live(database, (tasks) =>
      Effect.gen(function* () {
        const begun = yield* Deferred.make<void>()
        const gate = gated(Effect.zipRight(Deferred.succeed(begun, undefined), Effect.never))
        yield* tasks.register(gate)
        const id = yield* tasks.start(gate, { name: "it" })
        yield* Deferred.await(begun)
        return id
      }),
    )

  it("of an older version goes through migrate, in the commit that runs it", () => {
    const database = memoryDatabase()
    return run(
      Effect.gen(function* () {
        const id = yield* left(database)
        yield* live(database, (tasks) =>
          Effect.gen(function* () {
            yield* tasks.register(gated(Effect.void, 2, true))
            expect(yield* tasks.wait(id)).toEqual({ status: "completed", result: "it by 2" })
          }),
        )
        expect(row(database, id).version).toBe(2)
      }),
    )
  })

  it.each([
    ["no code", null, "no definition of test.gate is registered"],
    ["an older version without migrate", gated(Effect.void, 2), "version 2 has no migrate"],
  ])("with %s keeps its row and is shown as blocked, until it is discarded", (_name, definition, reason) => {
    const database = memoryDatabase()
    return run(
      Effect.gen(function* () {
        const id = yield* left(database)
        const before = row(database, id)
        yield* live(database, (tasks) =>
          Effect.gen(function* () {
            if (definition !== null) yield* tasks.register(definition)
            expect((yield* tasks.state(id)).blocked).toContain(reason)
            expect((yield* tasks.graphNow).get(id)?.blocked).toContain(reason)
            expect(row(database, id)).toEqual(before)
            yield* tasks.discard(id)
            expect(yield* tasks.wait(id)).toMatchObject({ status: "orphaned" })
            const { checkpoint, input, version } = row(database, id)
            expect({ checkpoint, input, version }).toEqual({
              ...{ checkpoint: before.checkpoint },
              input: before.input,
              version: 1,
            })
          }),
        )
      }),
    )
  })

  it("of a newer version is refused and kept", () => {
    const database = memoryDatabase()
    return run(
      Effect.gen(function* () {
        const id = yield* left(database)
        yield* live(database, (tasks) =>
          Effect.gen(function* () {
            yield* tasks.register(gated(Effect.void, 0))
            expect((yield* tasks.state(id)).blocked).toBe(
              "it was stored by version 1 of test.gate, the code is version 0",
            )
          }),
        )
        expect(row(database, id)).toMatchObject({ status: "pending", version: 1 })
      }),
    )
  })
})

describe("the live graph", () => {
  it("gains a node with the commit that creates its task and loses it with the one that ends it", () =>
    run(
      live(memoryDatabase(), (tasks) =>
        Effect.gen(function* () {
          const gate = yield* Deferred.make<void>()
          const definition = gated(Deferred.await(gate))
          yield* tasks.register(definition)
          const seen: Array<TaskGraph> = []
          const watching = yield* tasks.graph.pipe(
            Stream.scan(new Map() as TaskGraph, applyGraphEvent),
            Stream.tap((graph) => Effect.sync(() => void seen.push(graph))),
            Stream.takeUntil(() => seen.some((graph) => graph.size > 0) && seen.at(-1)?.size === 0),
            Stream.runDrain,
            Effect.fork,
          )
          const id = yield* tasks.start(definition, { name: "it" })
          expect((yield* tasks.graphNow).get(id)).toMatchObject({
            kind: "test.gate",
            status: "running",
            owner: null,
            blocked: null,
          })
          yield* Deferred.succeed(gate, undefined)
          yield* tasks.wait(id)
          expect((yield* tasks.graphNow).size).toBe(0)
          yield* Fiber.join(watching)
          expect(seen.at(-1)?.size).toBe(0)
        }),
      ),
    ))
})

describe("an owner that was replaced", () => {
  it("is refused at its next commit, stops what runs, and leaves the task to its successor", () => {
    const database = memoryDatabase()
    const begun = Effect.runSync(Deferred.make<void>())
    const gate = Effect.runSync(Deferred.make<void>())
    const interrupted = Effect.runSync(Deferred.make<void>())
    return run(
      live(database, (tasks) =>
        Effect.gen(function* () {
          const other = gated(Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)))
          yield* tasks.register(other)
          const left = yield* tasks.start(other, { name: "left" })
          const definition = gated(Effect.zipRight(Deferred.succeed(begun, undefined), Deferred.await(gate)))
          yield* tasks.register(definition)
          const id = yield* tasks.start(definition, { name: "it" })
          yield* Deferred.await(begun)
          const before = [row(database, id), row(database, left)]
          yield* makeMemoryStore(database)
          yield* Deferred.succeed(gate, undefined)
          yield* Deferred.await(interrupted)
          expect([row(database, id), row(database, left)]).toEqual(before)
          const late = yield* Effect.exit(tasks.start(definition, { name: "late" }))
          expect(Exit.isFailure(late)).toBe(true)
        }),
      ),
    )
  })
})
