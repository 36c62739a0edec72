/**
 * Path locks of several nodes on a real server: one holder of a path among all nodes, whatever becomes of the nodes and of their connections.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Exit, Fiber, Layer, type Scope } from "effect"
import pg from "pg"
import { expect, it } from "vitest"
import { ConversationId } from "../../../src/domain/ids.ts"
import type { PathLocksService } from "../../../src/domain/path-lock.ts"
import { postgresPathLocks } from "../../../src/storage/postgres/path-locks.ts"
import { postgresSettings } from "../../../src/storage/postgres/settings.ts"
import { BuiltinTools } from "../../../src/tools/builtin-tools.ts"
import { PathLocks } from "../../../src/tools/path-locks.ts"
import { Tools } from "../../../src/tools/tools.ts"
import { describePostgres, postgresDatabase, type TestDatabase } from "../../support/postgres.ts"

const settingsOf = (database: TestDatabase) => {
  const found = postgresSettings(database.env)
  if (found._tag === "Left") throw found.left
  return found.right
}

/** Two nodes, each with a session of its own. */
const nodes = Effect.gen(function* () {
  const database = yield* postgresDatabase
  const settings = settingsOf(database)
  return { database, one: yield* postgresPathLocks(settings), two: yield* postgresPathLocks(settings) }
})

const run = <A>(body: (parts: Effect.Effect.Success<typeof nodes>) => Effect.Effect<A, unknown, Scope.Scope>) =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(nodes, body)))

/** Holds `paths` until it is let go. */
const holding = (locks: PathLocksService, paths: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const [held, go] = [yield* Deferred.make<() => Promise<void>>(), yield* Deferred.make<void>()]
    const fiber = yield* Effect.fork(
      locks.withLock(paths, (sure) => Effect.zipRight(Deferred.succeed(held, sure), Deferred.await(go))),
    )
    return {
      fiber,
      sure: yield* Deferred.await(held),
      letGo: Effect.zipRight(Deferred.succeed(go, undefined), Fiber.join(fiber)),
    }
  })

/** Ends the sessions of path locks; gives how many. */
const cut = (database: TestDatabase) =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    const { rowCount } = await client.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'super-pi paths' AND datname = current_database()",
    )
    await client.end()
    return rowCount
  })

describePostgres("locks on paths among nodes", () => {
  it("let one node in at a time, and others in when it is done", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        let inside = 0
        let most = 0
        const step = Effect.gen(function* () {
          most = Math.max(most, ++inside)
          yield* Effect.yieldNow()
          inside--
        })
        yield* Effect.forEach(
          Array.from({ length: 40 }, (_, at) => at),
          (at) => (at % 2 === 0 ? one : two).withLock(["/shared/a"], () => step),
          // of each node one at a time, as its own file locks see to it
          { concurrency: 2, discard: true },
        )
        expect(most).toBe(1)
      }),
    ))

  it("never wait in a circle when nodes ask for the same paths in different orders", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        const orders = [
          ["/a", "/b", "/c"],
          ["/c", "/b", "/a"],
          ["/b", "/a", "/b"],
        ]
        const each = (locks: PathLocksService) =>
          Effect.forEach(
            Array.from({ length: 15 }, (_, at) => at),
            (at) => locks.withLock(orders[at % 3] ?? [], () => Effect.yieldNow()),
            { discard: true },
          )
        yield* Effect.all([each(one), each(two)], { concurrency: 2 })
      }),
    ))

  it("let holders of different paths in together", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        const first = yield* holding(one, ["/a"])
        const second = yield* holding(two, ["/b"])
        yield* first.letGo
        yield* second.letGo
      }),
    ))

  it("give up a wait that is interrupted, and hold nothing of it", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        const held = yield* holding(one, ["/a"])
        const waiting = yield* Effect.fork(two.withLock(["/a", "/b"], () => Effect.void))
        yield* Fiber.interrupt(waiting)
        expect(yield* one.withLock(["/b"], () => Effect.succeed("free"))).toBe("free")
        yield* held.letGo
        expect(yield* two.withLock(["/a", "/b"], () => Effect.succeed("free"))).toBe("free")
      }),
    ))

  it("go with a call that fails, breaks or is interrupted", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        expect(yield* Effect.flip(one.withLock(["/a"], () => Effect.fail("no")))).toBe("no")
        expect(Exit.isFailure(yield* Effect.exit(one.withLock(["/a"], () => Effect.die("broken"))))).toBe(true)
        const held = yield* holding(one, ["/a"])
        yield* Fiber.interrupt(held.fiber)
        expect(yield* two.withLock(["/a"], () => Effect.succeed("free"))).toBe("free")
      }),
    ))

  it("tell a call whose connection breaks while it holds them, and are there for the next one", () =>
    run(({ database, one, two }) =>
      Effect.gen(function* () {
        const held = yield* holding(one, ["/a"])
        yield* Effect.promise(held.sure)
        expect(yield* cut(database)).toBe(1)
        const lost = yield* Effect.flip(Fiber.join(held.fiber))
        expect(lost).toMatchObject({ _tag: "PathLockLost" })
        expect(String((lost as Error).message)).toContain("look at the file")
        yield* Effect.promise(() => expect(held.sure()).rejects.toMatchObject({ _tag: "PathLockLost" }))
        expect(yield* two.withLock(["/a"], () => Effect.succeed("free"))).toBe("free")
        expect(yield* one.withLock(["/a"], () => Effect.succeed("again"))).toBe("again")
      }),
    ))

  it("are refused with the reason where the server cannot be reached", () =>
    Effect.runPromise(
      Effect.scoped(
        Effect.gen(function* () {
          const database = yield* postgresDatabase
          const nowhere = { ...settingsOf(database), port: 1 }
          const locks = yield* postgresPathLocks(nowhere)
          const refused = yield* Effect.flip(locks.withLock(["/a"], () => Effect.void))
          expect(refused.message).toContain("nothing was changed")
        }),
      ),
    ))
})

describePostgres("tools in a shared workspace", () => {
  const toolsOf = (locks: PathLocksService) =>
    Effect.provide(Tools, Layer.provide(BuiltinTools.standalone, Layer.succeed(PathLocks, locks)))

  const directory = Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "super-pi-shared-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  )

  const call = (
    tools: Effect.Effect.Success<ReturnType<typeof toolsOf>>,
    root: string,
    args: Record<string, unknown>,
    shared: boolean,
  ) => {
    const edit = tools.get("edit")
    if (edit === undefined) throw new Error("no edit")
    return Effect.flatMap(edit.decode(args as never), (decoded) =>
      edit.execute(decoded, {
        ...{
          callId: "c",
          conversation: ConversationId.make(1),
          idempotencyKey: "k",
          effectKey: (name: string) => name,
        },
        ...{ workspace: { root, confined: true, ...(shared ? { shared } : {}) }, emit: () => Effect.void },
      }),
    )
  }

  it("of two nodes change one file one after the other: no edit is lost", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        const root = yield* directory
        const names = Array.from({ length: 12 }, (_, at) => `line-${at}.`)
        writeFileSync(join(root, "a.txt"), names.join("\n"))
        const [left, right] = [yield* toolsOf(one), yield* toolsOf(two)]
        yield* Effect.forEach(
          names,
          (name, at) =>
            call(
              at % 2 === 0 ? left : right,
              root,
              { path: "a.txt", edits: [{ oldText: name, newText: `${name} done` }] },
              true,
            ),
          { concurrency: "unbounded", discard: true },
        )
        expect(readFileSync(join(root, "a.txt"), "utf8").match(/done/g)).toHaveLength(names.length)
      }),
    ))

  it("wait for the other node only there: a local workspace asks nobody", () =>
    run(({ one, two }) =>
      Effect.gen(function* () {
        const root = yield* directory
        const path = join(root, "a.txt")
        writeFileSync(path, "old")
        const held = yield* holding(one, [path])
        const tools = yield* toolsOf(two)
        yield* call(tools, root, { path: "a.txt", edits: [{ oldText: "old", newText: "local" }] }, false)
        const waiting = yield* Effect.fork(
          call(tools, root, { path: "a.txt", edits: [{ oldText: "local", newText: "shared" }] }, true),
        )
        // Another path of the same node is free meanwhile: the wait is for this one.
        yield* two.withLock([join(root, "b.txt")], () => Effect.void)
        expect(readFileSync(path, "utf8")).toBe("local")
        yield* held.letGo
        yield* Fiber.join(waiting)
        expect(readFileSync(path, "utf8")).toBe("shared")
      }),
    ))

  it("leave the file as it was where the lock is lost before the write, and say so", () =>
    run(({ database, one }) =>
      Effect.gen(function* () {
        const root = yield* directory
        const path = join(root, "a.txt")
        writeFileSync(path, "old")
        // Between taking the lock and the write: the connection breaks where the call is asked whether it is sure.
        const breaking: PathLocksService = {
          withLock: (paths, use) =>
            one.withLock(paths, (sure) =>
              use(async () => {
                await Effect.runPromise(cut(database))
                await sure()
              }),
            ),
        }
        const tools = yield* toolsOf(breaking)
        const refused = yield* Effect.flip(
          call(tools, root, { path: "a.txt", edits: [{ oldText: "old", newText: "new" }] }, true),
        )
        expect(String((refused as { readonly message: string }).message)).toContain("lock among the nodes was lost")
        expect(readFileSync(path, "utf8")).toBe("old")
      }),
    ))
})
