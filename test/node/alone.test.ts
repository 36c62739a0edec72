/**
 * A node that is alone with its database: what it says of itself while it works and drains, through the routes of its gateway as well.
 */
import { Context, Deferred, Effect, Fiber, Layer, Schema, TestClock, TestContext } from "effect"
import { describe, expect, it } from "vitest"
import { Cluster, type ClusterService } from "../../src/actors/cluster.ts"
import { Sessions, type SessionsService } from "../../src/actors/sessions.ts"
import { text } from "../../src/domain/message.ts"
import { Models } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { openAuthenticator } from "../../src/protocols/auth/tokens.ts"
import { clusterRoutes } from "../../src/protocols/cluster/routes.ts"
import { limitsOf } from "../../src/protocols/http/limits.ts"
import { serveHttp } from "../../src/protocols/http/server.ts"
import { statusRoutes } from "../../src/protocols/http/status.ts"
import { makeSqliteReader } from "../../src/storage/sqlite/store.ts"
import { Gateway } from "../../src/super-pi-gateway.ts"
import { makeAlone } from "../../src/supervisors/alone.ts"
import { defineTool } from "../../src/tools/define.ts"
import { open, prompt, withNode } from "../conversation/harness.ts"

const rules = [
  { match: "^work", steps: [{ tools: [{ name: "hold", args: {} }] }, { text: "done" }] },
  { match: "", steps: [{ text: "hello" }] },
]

interface Held {
  /** The node as it is served. */
  readonly sessions: SessionsService
  readonly cluster: ClusterService
  /** Completes once a turn is in its tool; `release` lets the tool end. */
  readonly began: Effect.Effect<void>
  readonly release: Effect.Effect<void>
}

/** A node whose tool ends when the test says so. */
const held = <A>(use: (node: Held) => Effect.Effect<A, unknown>, over: { drainMs?: number; owns?: boolean } = {}) =>
  Effect.runPromise(
    Effect.gen(function* () {
      const began = yield* Deferred.make<void>()
      const go = yield* Deferred.make<void>()
      const hold = defineTool({
        name: "hold",
        description: "Ends when it is told to.",
        parameters: Schema.Struct({}),
        effects: ["read"],
        replay: "safe",
        execute: () =>
          Deferred.succeed(began, undefined).pipe(
            Effect.zipRight(Deferred.await(go)),
            Effect.as({ output: [text("held")] }),
          ),
      })
      return yield* withNode({ rules, tools: [hold] }, (inner, path) =>
        Effect.scoped(
          Effect.gen(function* () {
            const reads = yield* makeSqliteReader({ path })
            const { cluster, sessions } = makeAlone({
              sessions: inner,
              reads,
              name: "alone",
              version: "1.2.3",
              startedAt: 5,
              drainMs: over.drainMs ?? 60_000,
              owns: () => over.owns ?? true,
            })
            return yield* use({
              sessions,
              cluster,
              began: Deferred.await(began),
              release: Effect.asVoid(Deferred.succeed(go, undefined)),
            })
          }),
        ),
      )
    }),
  )

const working = ({ began, sessions }: Held) =>
  Effect.gen(function* () {
    const id = yield* open(sessions)
    const fiber = yield* Effect.fork(prompt(sessions, id, "work"))
    yield* began
    return { id, fiber }
  })

describe("a node that is alone", () => {
  it("is a cluster of one that holds every shard, with its machines and those at work", () =>
    held((node) =>
      Effect.gen(function* () {
        expect(yield* node.cluster.status).toMatchObject({ members: [{ machines: 0, busy: 0 }], strategy: "none" })
        const { fiber } = yield* working(node)
        expect(yield* node.cluster.status).toEqual({
          node: "alone",
          strategy: "none",
          members: [
            {
              name: "alone",
              epoch: 1,
              address: "",
              self: true,
              state: "up",
              version: "1.2.3",
              startedAt: 5,
              shards: 256,
              machines: 1,
              busy: 1,
            },
          ],
          shards: { total: 256, held: 256, unheld: 0 },
          oldestUnservedMs: null,
          draining: false,
        })
        expect(yield* node.cluster.health).toMatchObject({ healthy: true, ready: true, faults: [], database: "ok" })
        yield* node.release
        expect((yield* Fiber.join(fiber)).text).toBe("done")
      }),
    ))

  it("that drains refuses new turns and is done when the running ones have ended", () =>
    held((node) =>
      Effect.gen(function* () {
        const { fiber, id } = yield* working(node)
        const drained = yield* Effect.fork(node.cluster.drain)
        const again = yield* Effect.fork(node.cluster.drain)
        yield* Effect.yieldNow()
        const refused = yield* Effect.flip(prompt(node.sessions, id, "more"))
        expect(refused).toMatchObject({ _tag: "Busy", what: "node", retryAfterMs: 2000 })
        expect(yield* Effect.flip(open(node.sessions))).toMatchObject({ _tag: "Busy" })
        expect(yield* node.cluster.health).toMatchObject({ healthy: true, ready: false, draining: true })
        expect(yield* node.cluster.status).toMatchObject({ draining: true, members: [{ state: "draining" }] })
        expect((yield* node.sessions.state({ conversationId: id })).conversation_id).toBe(id)
        expect(yield* Fiber.poll(drained)).toMatchObject({ _tag: "None" })
        yield* node.release
        expect((yield* Fiber.join(fiber)).text).toBe("done")
        yield* Fiber.join(drained)
        yield* Fiber.join(again)
      }),
    ))

  it("does not wait beyond its deadline, nor for turns of another process", async () => {
    const drains = (node: Held) =>
      Effect.gen(function* () {
        const { fiber } = yield* working(node)
        yield* node.cluster.drain
        yield* Fiber.interrupt(fiber)
      })
    await held(drains, { drainMs: 10 })
    await held(drains, { owns: false })
  })
})

describe("the routes of a node", () => {
  it("tell probes whether it is healthy and ready, and how its cluster is", () =>
    held((node) =>
      Effect.scoped(
        Effect.gen(function* () {
          const service = { sessions: node.sessions, version: "1.2.3" }
          const server = yield* serveHttp({
            groups: [statusRoutes(service, () => [], node.cluster), clusterRoutes(node.cluster)],
            host: "127.0.0.1",
            port: 0,
            auth: openAuthenticator,
            limits: limitsOf({}),
            drainMs: () => 100,
          })
          const get = (path: string) =>
            Effect.promise(async () => {
              const response = await fetch(`${server.url}${path}`)
              return { status: response.status, body: JSON.parse(await response.text()) }
            })
          expect(yield* get("/ready")).toMatchObject({ status: 200, body: { status: "ready" } })
          const { fiber } = yield* working(node)
          const drained = yield* Effect.fork(node.cluster.drain)
          const notReady: Effect.Effect<unknown> = Effect.flatMap(get("/ready"), (reply) =>
            reply.status === 503 ? Effect.succeed(reply) : Effect.zipRight(Effect.sleep(10), notReady),
          )
          expect(yield* notReady).toMatchObject({ body: { status: "draining", faults: ["the node is draining"] } })
          expect(yield* get("/health")).toMatchObject({ status: 200, body: { status: "ok", draining: true } })
          expect(yield* get("/cluster")).toMatchObject({
            status: 200,
            body: { node: "alone", members: [{ started_at: 5, state: "draining" }], oldest_unserved_ms: null },
          })
          yield* node.release
          yield* Fiber.join(fiber)
          yield* Fiber.join(drained)
        }),
      ),
    ))

  it("say that the cluster is not known where the node does not answer for it", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const [route] = clusterRoutes({ status: Effect.never, health: Effect.never, drain: Effect.void }).routes
        if (route === undefined) throw new Error("expected a route")
        const asked = yield* Effect.fork(Effect.flip(route.handle({} as never)))
        yield* TestClock.adjust("5 seconds")
        expect(yield* Fiber.join(asked)).toMatchObject({ status: 503, code: "busy" })
      }).pipe(Effect.provide(TestContext.TestContext)),
    ))
})

describe("an application's gateway", () => {
  it("tells probes what a cluster service among its services says", () =>
    held((node) =>
      Effect.gen(function* () {
        const services = Layer.mergeAll(
          Layer.succeed(Sessions, node.sessions),
          Layer.succeed(Cluster, node.cluster),
          Layer.sync(Models, () => makeModels({ env: {}, model: "mock/echo" })),
        )
        const served = Gateway.layer({ port: 0 }).pipe(Layer.provide(services))
        const { url } = yield* Effect.map(Layer.build(served), (context) => Context.get(context, Gateway))
        const reply = yield* Effect.promise(async () => (await fetch(`${url}/cluster`)).text())
        expect(JSON.parse(reply)).toMatchObject({ node: "alone", members: [{ shards: 256 }] })
      }).pipe(Effect.scoped),
    ))
})
