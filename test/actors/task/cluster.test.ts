/**
 * Tasks of an application on several nodes that share a database: where they run, how they move, and what a node can do that lost them.
 */
import { Effect, Fiber, Schema, type Scope } from "effect"
import { describe, expect, it } from "vitest"
import { defineTask, Step } from "../../../src/actors/task/index.ts"
import { shardCount, shardOf } from "../../../src/domain/cluster.ts"
import type { TaskId } from "../../../src/domain/ids.ts"
import { changeTask } from "../../../src/supervisors/task-change.ts"
import { routedTasks } from "../../../src/supervisors/tasks-routed.ts"
import { allShards, MemoryCluster } from "../../support/memory-cluster.ts"
import { engineOn, line, quiet, settle, type TaskNode, World } from "./cluster-node.ts"

const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(quiet(Effect.scoped(body)))

const row = (cluster: MemoryCluster, id: TaskId) => {
  const found = cluster.database.records.tasks.get(id)
  if (found === undefined) throw new Error(`no task ${id}`)
  return found
}

const halves = [allShards.slice(0, shardCount / 2), allShards.slice(shardCount / 2)] as const

/** Two nodes with the code of {@link line}; the first has every shard. */
const two = (cluster: MemoryCluster, world: World) =>
  Effect.gen(function* () {
    const one = yield* engineOn(cluster.node("one"))
    const other = yield* engineOn(cluster.node("two"))
    yield* one.tasks.register(line(world, "one"))
    yield* other.tasks.register(line(world, "two"))
    yield* one.gain(allShards)
    return [one, other] as const
  })

/** A task of node one that stands at its gate. */
const standing = (world: World, one: TaskNode, name = "a") =>
  Effect.tap(one.tasks.start(line(world, "one"), { name }), () => world.until(`one ${name} second`))

describe("a task", () => {
  it("begins at a place of the node that starts it, and runs there only", () => {
    const [cluster, world] = [new MemoryCluster(), new World()]
    return run(
      Effect.gen(function* () {
        const [one, other] = yield* two(cluster, world)
        yield* one.leave(halves[0])
        yield* other.gain(halves[0])
        world.open("one a")
        world.open("two b")
        for (const [node, name] of [
          [one, "a"],
          [other, "b"],
        ] as const) {
          const id = yield* node.tasks.start(line(world, node.name), { name })
          expect(yield* node.tasks.outcome(line(world, node.name), id)).toEqual({
            status: "completed",
            result: `${name} on ${node.name}`,
          })
          expect((node === one ? halves[1] : halves[0]).includes(shardOf(id))).toBe(true)
        }
        expect(world.did.filter((what) => what.startsWith("one b") || what.startsWith("two a"))).toEqual([])
      }),
    )
  })

  it("cannot begin on a node that holds nothing yet", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const node = yield* engineOn(cluster.node("one"))
        yield* node.tasks.register(line(world, "one"))
        const refused = yield* Effect.flip(node.tasks.start(line(world, "one"), { name: "a" }))
        expect(refused).toMatchObject({ _tag: "Busy", retryAfterMs: 1_000 })
      }),
    ))

  it("whose shard leaves is stopped and released, and begins its phase again on the other node without a crash counted", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const id = yield* standing(world, one)
        const waiting = yield* Effect.fork(one.tasks.outcome(line(world, "one"), id))
        yield* one.leave(allShards)
        expect(row(cluster, id)).toMatchObject({ status: "pending", node: null, crashes: 0 })
        expect((yield* one.tasks.graphNow).size).toBe(0)
        world.open("two a")
        yield* other.gain(allShards)
        // Whoever waits on the first node is told as well.
        expect(yield* Fiber.join(waiting)).toEqual({ status: "completed", result: "a on two" })
        expect(world.did).toEqual(["one a first", "one a second", "two a second", "two a third"])
        expect(row(cluster, id)).toMatchObject({ status: "terminal", crashes: 0 })
      }),
    ))

  it("may end its phase in the time that it is given, and goes on from there elsewhere", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const id = yield* standing(world, one)
        const leaving = yield* Effect.fork(one.leave(allShards, 60_000))
        yield* settle
        expect(leaving.unsafePoll()).toBe(null)
        world.open("one a")
        yield* Fiber.join(leaving)
        expect(row(cluster, id)).toMatchObject({ status: "pending", node: null, checkpoint: { phase: "third" } })
        yield* other.gain(allShards)
        yield* other.tasks.wait(id)
        expect(world.did).toEqual(["one a first", "one a second", "two a third"])
      }),
    ))

  it("of a node that died counts as an unclean end, and what the dead node still writes is refused", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const id = yield* standing(world, one)
        yield* one.forget
        yield* other.gain(allShards)
        yield* world.until("two a second")
        expect(row(cluster, id)).toMatchObject({ status: "running", node: "two", crashes: 1 })
        // It wakes up late, with its phase done.
        world.open("one a")
        yield* settle
        world.open("two a")
        expect(yield* other.tasks.wait(id)).toEqual({ status: "completed", result: "a on two" })
        expect(world.did.filter((what) => what.endsWith("third"))).toEqual(["two a third"])
        expect(yield* one.tasks.wait(id)).toEqual({ status: "completed", result: "a on two" })
      }),
    ))

  it("taken over by an older node from a newer one is the older one's: a later fence decides, not a later epoch", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        yield* one.leave(allShards)
        yield* other.gain(allShards)
        const id = yield* Effect.tap(other.tasks.start(line(world, "two"), { name: "a" }), () =>
          world.until("two a second"),
        )
        yield* other.forget
        yield* one.gain(allShards)
        yield* world.until("one a second")
        // The newer node takes up other shards meanwhile; what it lost stays lost.
        world.open("two a")
        yield* settle
        expect(row(cluster, id)).toMatchObject({ node: "one", checkpoint: { phase: "second" } })
        world.open("one a")
        expect(yield* one.tasks.wait(id)).toEqual({ status: "completed", result: "a on one" })
        expect(world.did.filter((what) => what.endsWith("third"))).toEqual(["one a third"])
      }),
    ))

  it("that is another node's is refused with a word of its own, and changed where it is", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const id = yield* standing(world, one)
        for (const change of [other.tasks.abort(id), other.tasks.retry(id), other.tasks.discard(id)]) {
          expect(yield* Effect.flip(change as Effect.Effect<unknown, unknown>)).toMatchObject({
            _tag: "ServiceFailure",
            code: "moved",
          })
        }
        expect(row(cluster, id)).toMatchObject({ abortRequested: false })
        expect(yield* one.tasks.abort(id)).toEqual({ aborted: true })
        expect(yield* other.tasks.wait(id)).toMatchObject({ status: "aborted" })
        // One that has ended is nobody's: every node says so.
        expect(yield* other.tasks.abort(id)).toEqual({ aborted: false })
      }),
    ))

  it("is aborted through the node that holds it where the application asks another one", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const routed = routedTasks(other.tasks, ({ change }) => changeTask(one.tasks, change))
        const id = yield* standing(world, one)
        expect(yield* routed.abort(id)).toEqual({ aborted: true })
        expect(yield* routed.wait(id)).toEqual({ status: "aborted", reason: "aborted by hand" })
        expect(yield* routed.abort(id)).toEqual({ aborted: false })
        expect(yield* Effect.flip(routed.retry(id))).toMatchObject({ _tag: "Refused" })
      }),
    ))

  it("started on two nodes with one request is one task", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        yield* one.leave(halves[0])
        yield* other.gain(halves[0])
        const requestId = "once"
        const ids = yield* Effect.all(
          [one, other, one, other].map((node) =>
            node.tasks.start(line(world, node.name), { name: "a" }, { requestId }),
          ),
          { concurrency: "unbounded" },
        )
        expect(new Set(ids).size).toBe(1)
      }),
    ))
})

describe("a task that waits for another", () => {
  const parent = (on: TaskId) =>
    defineTask({
      kind: "test.parent",
      version: 1,
      input: Schema.Null,
      checkpoint: Schema.Union(
        Schema.Struct({ phase: Schema.Literal("wait") }),
        Schema.Struct({ phase: Schema.Literal("end") }),
      ),
      result: Schema.String,
      initial: () => ({ phase: "wait" as const }),
      phases: {
        wait: () => Effect.succeed(Step.wait({ on: [on] }, { phase: "end" as const })),
        end: () => Effect.succeed(Step.complete("waited")),
      },
    })

  for (const deaf of [false, true]) {
    it(`on another node goes on when that has ended there (signals are lost: ${deaf})`, () =>
      run(
        Effect.gen(function* () {
          const [cluster, world] = [new MemoryCluster(), new World()]
          cluster.deaf = deaf
          const [one, other] = yield* two(cluster, world)
          yield* one.leave(halves[1])
          yield* other.gain(halves[1])
          const id = yield* standing(world, one)
          yield* other.tasks.register(parent(id))
          const waits = yield* other.tasks.start(parent(id), null)
          const waiting = yield* Effect.fork(other.tasks.wait(waits))
          while (row(cluster, waits).status !== "waiting") yield* Effect.yieldNow()
          world.open("one a")
          expect(yield* Fiber.join(waiting)).toEqual({ status: "completed", result: "waited" })
          expect(row(cluster, id).status).toBe("terminal")
        }),
      ))
  }

  it("goes on also where both move while it waits", () =>
    run(
      Effect.gen(function* () {
        const [cluster, world] = [new MemoryCluster(), new World()]
        const [one, other] = yield* two(cluster, world)
        const id = yield* standing(world, one)
        yield* one.tasks.register(parent(id))
        yield* other.tasks.register(parent(id))
        const waits = yield* one.tasks.start(parent(id), null)
        while (row(cluster, waits).status !== "waiting") yield* Effect.yieldNow()
        // First the task that is waited for, then the one that waits.
        yield* one.leave([shardOf(id)])
        yield* other.gain([shardOf(id)])
        yield* one.leave(allShards.filter((shard) => shard !== shardOf(id)))
        yield* other.gain(allShards)
        world.open("two a")
        expect(yield* other.tasks.wait(waits)).toEqual({ status: "completed", result: "waited" })
      }),
    ))
})
