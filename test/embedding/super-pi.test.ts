/**
 * `SuperPi.layer` in an application: what it provides, what it needs, what it refuses, and that it goes on where it was.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Chunk, Context, Data, Deferred, Effect, Either, Exit, Fiber, Layer, Schema, Stream } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { attachSessions } from "../../src/assembly.ts"
import {
  ArtifactStore,
  Documents,
  defineDocument,
  defineTask,
  defineTool,
  done,
  type Event,
  InvalidOptions,
  type Models,
  type ModelsOption,
  Queues,
  type QueueWorker,
  Sessions,
  Step,
  Store,
  SuperPi,
  type SuperPiError,
  type SuperPiServices,
  Tasks,
} from "../../src/index.ts"
import { Models as ModelsTag } from "../../src/models/model.ts"
import { makeModels } from "../../src/models/service.ts"
import { MemoryStore } from "../../src/testing.ts"

const directory = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-embedding-")))
afterAll(() => rmSync(directory, { recursive: true, force: true }))
let count = 0
const database = (): string => join(directory, `${++count}`, "app.db")

/** A service of the application. */
class Clock extends Context.Tag("test/Clock")<Clock, { readonly now: Effect.Effect<string> }>() {
  static readonly live = Layer.succeed(Clock, { now: Effect.succeed("noon") })
}
class Bell extends Context.Tag("test/Bell")<Bell, { readonly ring: Effect.Effect<void> }>() {}

const time = defineTool({
  name: "time",
  description: "Tells the time",
  parameters: Schema.Struct({}),
  effects: ["read"],
  replay: "safe",
  execute: () =>
    Effect.gen(function* () {
      return { output: [{ type: "text", text: yield* (yield* Clock).now }] }
    }),
})

const bell = defineTool({
  name: "bell",
  description: "Rings",
  parameters: Schema.Struct({}),
  effects: ["exec"],
  execute: () =>
    Effect.as(
      Effect.flatMap(Bell, ({ ring }) => ring),
      { output: [] },
    ),
})

const models = {
  env: {},
  script: {
    rules: [
      { match: "time", steps: [{ tools: [{ name: "time", args: {} }] }, { text: "it is noon" }] },
      { match: "fail", steps: [{ status: 400, message: "no" }] },
      { match: "", steps: [{ text: "hello there", chunks: 2 }] },
    ],
  },
} satisfies ModelsOption

const defaults = { model: "script/test", cwd: directory, policy: { backoffBaseMs: 1 } }

const inMemory = SuperPi.layer({ storage: "memory", models, defaults, tools: [time] })

/** What a layer of wrong options fails with. */
const refusal = (layer: Layer.Layer<SuperPiServices, SuperPiError>) =>
  Effect.runPromise(Effect.map(Effect.either(Effect.scoped(Layer.build(layer))), Either.flip)).then(Either.getOrThrow)

const run = <A, E>(program: Effect.Effect<A, E, SuperPiServices | Clock>) =>
  Effect.runPromise(program.pipe(Effect.provide(inMemory), Effect.provide(Clock.live)))

describe("a layer over memory", () => {
  it("answers a prompt with a tool that uses the application's service", () =>
    run(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open({ title: "t" })
        const settled = yield* conversation.ask("what time is it?")
        expect(settled).toMatchObject({ status: "done", text: "it is noon" })
        const results = (yield* conversation.transcript).flatMap((entry) => entry.model)
        expect(results).toContainEqual(
          expect.objectContaining({ role: "tool", content: [{ type: "text", text: "noon" }] }),
        )
      }),
    ))

  it("gives the events of one prompt as a Stream that ends with it", () =>
    run(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open()
        const events = Chunk.toReadonlyArray(yield* Stream.runCollect(conversation.run("hi")))
        expect(events[0]?.type).toBe("snapshot")
        expect(events.at(-1)).toMatchObject({ type: "submission_updated", status: "done" })
        const text = events.flatMap((event: Event) => (event.type === "text_delta" ? [event.text] : [])).join("")
        expect(text).toBe("hello there")
      }),
    ))

  it("ends that Stream also where the input was admitted and answered before", () =>
    run(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open()
        yield* conversation.ask("hi", { requestId: "once" })
        const events = yield* Stream.runCollect(conversation.run("hi", { requestId: "once" }))
        expect(Chunk.toReadonlyArray(events).map((event) => event.type)).toEqual(["snapshot"])
        const inputs = (yield* conversation.transcript).filter((entry) => entry.kind === "pi.user")
        expect(inputs).toHaveLength(1)
      }),
    ))

  it("fails an ask without an answer with why", () =>
    run(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open()
        const failure = yield* Effect.flip(conversation.ask("fail"))
        expect(failure).toMatchObject({ _tag: "Unanswered", reason: "model_error", conversation: conversation.id })
        expect(failure.message).toMatch(/has no answer: .*no/)
      }),
    ))

  it("forks, and keeps conversations of other principals apart", () =>
    run(
      Effect.gen(function* () {
        const pi = yield* SuperPi
        const conversation = yield* pi.open()
        yield* conversation.ask("hi")
        const fork = yield* conversation.fork()
        yield* fork.ask("more")
        expect((yield* fork.transcript).length).toBeGreaterThan((yield* conversation.transcript).length)
        expect(yield* pi.conversations()).toHaveLength(2)
        const other = pi.as("somebody else")
        expect(yield* other.conversations()).toEqual([])
        expect(yield* Effect.flip(other.conversation(conversation.id).state)).toMatchObject({ _tag: "NotFound" })
      }),
    ))

  it("provides the services beside conversations", () =>
    run(
      Effect.gen(function* () {
        const sessions = yield* Sessions
        const artifacts = yield* ArtifactStore
        const conversation = yield* (yield* SuperPi).open()
        yield* artifacts.put({
          conversation: conversation.id,
          name: "a.txt",
          mediaType: "text/plain",
          content: new TextEncoder().encode("a"),
        })
        expect(yield* artifacts.list(conversation.id)).toMatchObject([{ name: "a.txt", size: 1 }])
        expect((yield* sessions.tree).children.map((child) => child.name)).toContain("node")
        expect((yield* Store).location).toBe("memory")
      }),
    ))
})

describe("tasks of an application", () => {
  const greet = defineTask({
    kind: "test.greet",
    version: 1,
    input: Schema.Struct({ name: Schema.String }),
    checkpoint: Schema.Struct({ phase: Schema.Literal("go") }),
    result: Schema.String,
    initial: () => ({ phase: "go" }) as const,
    phases: {
      go: ({ input }) =>
        Effect.map(
          Effect.flatMap(Clock, ({ now }) => now),
          (at) => Step.complete(`${input.name} at ${at}`),
        ),
    },
  })

  it("run with its services", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const tasks = yield* Tasks
        const id = yield* tasks.start(greet, { name: "Ada" })
        expect(yield* tasks.outcome(greet, id)).toEqual({ status: "completed", result: "Ada at noon" })
      }).pipe(
        Effect.provide(SuperPi.layer({ storage: "memory", models, defaults, tasks: [greet] })),
        Effect.provide(Clock.live),
      ),
    ))
})

describe("documents of an application", () => {
  const cart = defineDocument({
    kind: "test.cart",
    version: 1,
    schema: Schema.Struct({ items: Schema.mutable(Schema.Array(Schema.String)) }),
    scope: "conversation",
    history: "rewindable",
    fork: "asOf",
    initial: () => ({ items: [] }),
  })

  it("are kept beside a conversation, and a fork has them as of its entry", () =>
    run(
      Effect.gen(function* () {
        const documents = yield* Documents
        const conversation = yield* (yield* SuperPi).open()
        const add = (item: string) =>
          documents.update(cart, { conversation: conversation.id }, (value) => void value.items.push(item))
        yield* add("chair")
        yield* conversation.ask("hi")
        const fork = yield* conversation.fork()
        yield* add("table")
        expect(yield* documents.get(cart, { conversation: conversation.id })).toEqual({ items: ["chair", "table"] })
        expect(yield* documents.get(cart, { conversation: fork.id })).toEqual({ items: ["chair"] })
      }),
    ))
})

describe("queues of an application", () => {
  it("run its jobs with its services", () =>
    Effect.runPromise(
      Effect.gen(function* () {
        const did = yield* Deferred.make<string>()
        const worker: QueueWorker<Clock> = {
          queue: "mails",
          name: "send",
          run: ({ job }) =>
            Effect.gen(function* () {
              const at = yield* (yield* Clock).now
              yield* Deferred.succeed(did, `${JSON.stringify(job.args)} at ${at}`)
              return done
            }),
        }
        const options = { storage: "memory", models, defaults, queues: { mails: { concurrency: 2 } } } as const
        yield* Effect.gen(function* () {
          yield* (yield* Queues).insert({ queue: "mails", worker: "send", args: { to: "Ada" } })
          expect(yield* Deferred.await(did)).toBe('{"to":"Ada"} at noon')
        }).pipe(Effect.provide(SuperPi.layer({ ...options, workers: [worker] })), Effect.provide(Clock.live))
      }),
    ))
})

describe("a database", () => {
  const layer = (path: string) => SuperPi.layer({ storage: { path }, models, defaults, program: "the test" })

  it("keeps conversations from one life to the next", () => {
    const path = database()
    const life = Effect.gen(function* () {
      const conversation = yield* (yield* SuperPi).open({ requestId: "same" })
      yield* conversation.ask("hi", { requestId: "first" })
      return { id: conversation.id, entries: (yield* conversation.transcript).length }
    })
    return Effect.runPromise(
      Effect.gen(function* () {
        const first = yield* Effect.provide(life, layer(path))
        expect(yield* Effect.provide(life, layer(path))).toEqual(first)
      }),
    )
  })

  it("belongs to one layer: a second one fails and names the first, until that is released", () => {
    const path = database()
    return Effect.runPromise(
      Effect.gen(function* () {
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Layer.build(layer(path))
            const second = yield* Effect.flip(Effect.scoped(Layer.build(layer(path))))
            expect(second).toMatchObject({ _tag: "OwnedElsewhere", program: "the test", pid: process.pid })
          }),
        )
        yield* Effect.scoped(Layer.build(layer(path)))
      }),
    )
  })

  it("answers other processes on its socket while it lives", () => {
    const path = database()
    return Effect.runPromise(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open({ title: "seen from outside" })
        const sessions = yield* attachSessions({ db: path, program: "other" })
        const list = yield* sessions?.list({}) ?? Effect.succeed([])
        expect(list).toMatchObject([{ conversation_id: conversation.id, title: "seen from outside" }])
      }).pipe(Effect.scoped, Effect.provide(layer(path))),
    )
  })

  it("stays without a socket where that is asked for", () => {
    const path = database()
    return Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          yield* Layer.build(SuperPi.layer({ storage: { path, serve: false }, models, defaults }))
          expect(Exit.isFailure(yield* Effect.exit(attachSessions({ db: path, program: "other" })))).toBe(true)
        }),
      ),
    )
  })
})

describe("layers among the options", () => {
  class Broken extends Data.TaggedError("Broken")<{ readonly why: string }> {}

  it("take the place of the built-in engine and models, with what they need and fail with", () => {
    const storage = Layer.unwrapEffect(Effect.map(Bell, () => MemoryStore.layer()))
    const own: Layer.Layer<Models, Broken> = Layer.succeed(ModelsTag, makeModels(models))
    const layer = SuperPi.layer({ storage, models: own, defaults })
    // The type says what they need and fail with.
    const typed: Layer.Layer<SuperPiServices, SuperPiError | Broken, Bell> = layer
    return Effect.runPromise(
      Effect.gen(function* () {
        const conversation = yield* (yield* SuperPi).open()
        expect((yield* conversation.ask("hi")).text).toBe("hello there")
      }).pipe(Effect.provide(typed), Effect.provideService(Bell, { ring: Effect.void })),
    )
  })

  it("that fail make the whole fail with their own error", async () => {
    const storage = Layer.fail(new Broken({ why: "no disk" })) as Layer.Layer<Store, Broken>
    const exit = await Effect.runPromise(Effect.flip(Effect.scoped(Layer.build(SuperPi.layer({ storage, models })))))
    expect(exit).toMatchObject({ _tag: "Broken", why: "no disk" })
  })

  it("of two tools with services of their own need both", () => {
    const both = SuperPi.layer({ storage: "memory", models, defaults, tools: [time, bell] })
    const typed: Layer.Layer<SuperPiServices, SuperPiError, Clock | Bell> = both
    // @ts-expect-error one of the two services is missing
    const short: Layer.Layer<SuperPiServices, SuperPiError, Clock> = both
    expect([typed, short].every(Layer.isLayer)).toBe(true)
  })
})

describe("options that cannot work", () => {
  const file = join(directory, "a-file")
  beforeAll(() => {
    writeFileSync(file, "")
    mkdirSync(join(directory, "a-directory"))
  })
  const tool = (name: string) =>
    defineTool({
      name,
      description: "d",
      parameters: Schema.Struct({}),
      effects: [],
      execute: () => Effect.succeed({ output: [] }),
    })
  const over = { storage: "memory", models, defaults } as const

  it.each([
    [
      "two tools with one name",
      () => SuperPi.layer({ ...over, tools: [tool("a"), tool("a")] }),
      'tools[1].name: expected a name that no other tool has, got "a"',
    ],
    [
      "a tool with a built-in tool's name",
      () => SuperPi.layer({ ...over, tools: [tool("bash")] }),
      'tools[0].name: expected a name that no built-in tool has (builtinTools chooses those), got "bash"',
    ],
    [
      "a tool whose name no provider accepts",
      () => SuperPi.layer({ ...over, tools: [tool("a b")] }),
      'tools[0].name: expected 1 to 64 letters, digits, underscores or dashes, got "a b"',
    ],
    [
      "a built-in tool that there is not",
      () => SuperPi.layer({ ...over, builtinTools: ["bash", "sudo"] }),
      /^builtinTools\[1\]: expected one of read, .*, got "sudo"$/,
    ],
    [
      "a working directory that is a file",
      () => SuperPi.layer({ ...over, defaults: { ...defaults, cwd: file } }),
      /^defaults\.cwd: expected the absolute path of a directory, got ".*a-file" \(not a directory\)$/,
    ],
    [
      "a working directory that is not there",
      () => SuperPi.layer({ ...over, defaults: { ...defaults, cwd: join(directory, "nothing") } }),
      /^defaults\.cwd: expected the absolute path of a directory, got ".*nothing" \(ENOENT\)$/,
    ],
    [
      "a relative working directory",
      () => SuperPi.layer({ ...over, defaults: { ...defaults, cwd: "here" } }),
      'defaults.cwd: expected the absolute path of a directory, got "here"',
    ],
    [
      "a model that nobody serves",
      () => SuperPi.layer({ ...over, defaults: { ...defaults, model: "no/such" } }),
      /^defaults\.model: expected a model that a configured provider serves, got "no\/such" \(.*\)$/,
    ],
    [
      "a database that is a directory",
      () => SuperPi.layer({ ...over, storage: { path: join(directory, "a-directory") } }),
      "storage.path: expected the path of a database file, got a directory",
    ],
    [
      "a worker of a queue that there is not",
      () => SuperPi.layer({ ...over, workers: [{ queue: "mails", name: "send", run: () => Effect.succeed(done) }] }),
      /^workers\[0\]\.queue: expected one of generation_retry, .*, got "mails"$/,
    ],
    [
      "a queue that runs nothing",
      () => SuperPi.layer({ ...over, queues: { mails: { concurrency: 0 } } }),
      "queues.mails.concurrency: expected a whole number of at least 1, got 0",
    ],
    ["a node without a name", () => SuperPi.layer({ ...over, node: "" }), 'node: expected a name, got ""'],
  ])("are refused: %s", async (_, layer, message) => {
    const error = await refusal(layer())
    expect(error).toBeInstanceOf(InvalidOptions)
    expect(error.message).toMatch(message)
    if (typeof message === "string") expect(error.message).toBe(message)
  })

  it("leave a database below a file alone, with a typed error", async () => {
    const error = await refusal(SuperPi.layer({ ...over, storage: { path: join(file, "app.db") } }))
    expect(error._tag).toBe("StorageUnavailable")
  })
})

describe("an interrupted application", () => {
  it("stops cleanly, and its work goes on in the next life", () => {
    const path = database()
    const hanging = { env: {}, script: { rules: [{ match: "", steps: [{ text: "on my way", hang: true }] }] } } as const
    return Effect.runPromise(
      Effect.gen(function* () {
        const id = yield* Effect.gen(function* () {
          const conversation = yield* (yield* SuperPi).open()
          const watching = yield* conversation.events.pipe(
            Stream.takeUntil((event) => event.type === "text_delta"),
            Stream.runDrain,
            Effect.fork,
          )
          yield* conversation.submit("go")
          yield* Fiber.join(watching)
          return conversation.id
        }).pipe(Effect.provide(SuperPi.layer({ storage: { path }, models: hanging, defaults })))
        yield* Effect.gen(function* () {
          const conversation = (yield* SuperPi).conversation(id)
          const tasks = yield* (yield* Store).openTasks(id)
          for (const task of tasks) expect(task.crashes).toBe(0)
          expect((yield* conversation.ask("again")).text).toBe("hello there")
        }).pipe(Effect.provide(SuperPi.layer({ storage: { path }, models, defaults })))
      }),
    )
  })
})
