/**
 * Tasks of an application on two nodes over one PostgreSQL: they move, they survive a node, and a node that lost them can write nothing.
 */
import { Effect, Fiber, type Scope } from "effect"
import { expect, it } from "vitest"
import { shardCount } from "../../../src/domain/cluster.ts"
import { allShards } from "../../support/memory-cluster.ts"
import { describePostgres } from "../../support/postgres.ts"
import { postgresCluster } from "../../support/postgres-cluster.ts"
import { engineOn, line, quiet, settle, type TaskNode, World } from "./cluster-node.ts"

const run = <A>(body: Effect.Effect<A, unknown, Scope.Scope>): Promise<A> =>
  Effect.runPromise(quiet(Effect.scoped(body)))

/** Two nodes with the code of {@link line}; the first has every shard. */
const two = (world: World) =>
  Effect.gen(function* () {
    const open = yield* postgresCluster
    const one = yield* engineOn(yield* open("one"))
    const other = yield* engineOn(yield* open("two"))
    yield* one.tasks.register(line(world, "one"))
    yield* other.tasks.register(line(world, "two"))
    yield* one.gain(allShards)
    return [one, other] as const
  })

const standing = (world: World, node: TaskNode, name = "a") =>
  Effect.tap(node.tasks.start(line(world, node.name), { name }), () => world.until(`${node.name} ${name} second`))

describePostgres("tasks on two nodes", () => {
  it("begin where they are started, move with their shard without a crash counted, and are waited for from anywhere", () =>
    run(
      Effect.gen(function* () {
        const world = new World()
        const [one, other] = yield* two(world)
        const id = yield* standing(world, one)
        const waiting = yield* Effect.fork(one.tasks.outcome(line(world, "one"), id))
        yield* one.leave(allShards)
        expect((yield* one.tasks.state(id)).task).toMatchObject({ status: "pending", node: null, crashes: 0 })
        world.open("two a")
        yield* other.gain(allShards)
        expect(yield* Fiber.join(waiting)).toEqual({ status: "completed", result: "a on two" })
        expect(world.did).toEqual(["one a first", "one a second", "two a second", "two a third"])
      }),
    ))

  it("of a node that missed that its shards went are the new one's: an older node takes them from a newer one too", () =>
    run(
      Effect.gen(function* () {
        const world = new World()
        const [one, other] = yield* two(world)
        yield* one.leave(allShards)
        yield* other.gain(allShards)
        const id = yield* standing(world, other)
        yield* other.forget
        yield* one.gain(allShards)
        yield* world.until("one a second")
        expect((yield* one.tasks.state(id)).task).toMatchObject({ node: "one", crashes: 1 })
        world.open("two a")
        yield* settle
        world.open("one a")
        expect(yield* one.tasks.wait(id)).toEqual({ status: "completed", result: "a on one" })
        expect(yield* other.tasks.wait(id)).toEqual({ status: "completed", result: "a on one" })
        expect(world.did.filter((what) => what.endsWith("third"))).toEqual(["one a third"])
      }),
    ))

  it("of a node that is fenced off stop there, and go on where their shard went", () =>
    run(
      Effect.gen(function* () {
        const world = new World()
        const [one, other] = yield* two(world)
        const id = yield* standing(world, one)
        yield* one.fence
        yield* other.gain(allShards)
        yield* world.until("two a second")
        world.open("one a")
        world.open("two a")
        expect(yield* other.tasks.wait(id)).toEqual({ status: "completed", result: "a on two" })
        expect(yield* Effect.flip(one.tasks.start(line(world, "one"), { name: "b" }))).toMatchObject({
          _tag: "ServiceFailure",
        })
        expect(world.did.filter((what) => what.endsWith("third"))).toEqual(["two a third"])
      }),
    ))

  it("are started once for one request, on whatever nodes at the same moment", () =>
    run(
      Effect.gen(function* () {
        const world = new World()
        const [one, other] = yield* two(world)
        const half = allShards.slice(shardCount / 2)
        yield* one.leave(half)
        yield* other.gain(half)
        const ids = yield* Effect.all(
          [one, other, one, other, one, other].map((node) =>
            node.tasks.start(line(world, node.name), { name: "a" }, { requestId: "once" }),
          ),
          { concurrency: "unbounded" },
        )
        expect(new Set(ids).size).toBe(1)
        const all = yield* one.tasks.graphOfAll
        expect([...all.keys()]).toEqual([ids[0]])
        expect((yield* one.tasks.graphNow).size + (yield* other.tasks.graphNow).size).toBe(1)
      }),
    ))
})
