/**
 * Ownership of a database: one process at a time, and none after its death. With real processes.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either, Exit, Fiber, Layer, Scope } from "effect"
import { beforeAll } from "vitest"
import { awaitFree, claim, OwnedElsewhere } from "../../src/storage/sqlite/ownership.ts"
import { socketPath } from "../../src/storage/sqlite/paths.ts"
import { SqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store } from "../../src/storage/store.ts"
import { bundle, run, temporaryDirectory } from "./support.ts"

/** Claims the database that it is given, says what came of it, and holds on. */
const holder = `
import { Effect, Either } from "effect"
import { claim } from "./src/storage/sqlite/ownership.ts"
const [, , path, program] = process.argv
const attempt = Effect.either(claim(path, { program })).pipe(
  Effect.tap((result) => Effect.sync(() => console.log(Either.isRight(result) ? "held" : result.left._tag + " " + result.left.program))),
  Effect.tap((result) => Either.isRight(result) ? Effect.never : Effect.void),
)
Effect.runFork(Effect.scoped(attempt))
process.stdin.resume().on("end", () => process.exit(0))
`

let program = ""
beforeAll(async () => {
  const directory = mkdtempSync(join(tmpdir(), "super-pi-holder-"))
  program = await bundle(directory, "holder", holder)
  return () => rmSync(directory, { recursive: true, force: true })
})

/** Starts a process that claims `path` and waits for its word. */
const claimant = (path: string, name: string) =>
  Effect.gen(function* () {
    const child = yield* run(program, [path, name])
    return { child, said: yield* Effect.promise(child.line) }
  })

const claimIn = (path: string, scope: Scope.Scope) => Scope.extend(claim(path, { program: "test" }), scope)

describe("a claim", () => {
  it.scopedLive("names this process in the owner file, for this user only, and removes it when the lease ends", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const scope = yield* Scope.make()
      const lease = yield* claimIn(path, scope)
      const written: unknown = JSON.parse(readFileSync(`${path}.owner`, "utf8"))
      expect(written).toEqual({ ...lease.owner })
      expect(lease.owner).toMatchObject({ pid: process.pid, program: "test", socket: `${path}.sock` })
      expect(statSync(`${path}.owner`).mode & 0o777).toBe(0o600)
      yield* Scope.close(scope, Exit.void)
      expect(existsSync(`${path}.owner`)).toBe(false)
      yield* claim(path, { program: "again" })
    }),
  )

  it.scopedLive("of a database that this process holds already fails naming itself", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      yield* claim(path, { program: "first" })
      const second = yield* Effect.flip(claim(path, { program: "second" }))
      expect(second).toMatchObject({ _tag: "OwnedElsewhere", pid: process.pid, program: "first" })
    }),
  )

  it.scopedLive("fails naming the process that holds it, without the words of SQLite", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const { child, said } = yield* claimant(path, "other program")
      expect(said).toBe("held")
      const error = yield* Effect.flip(claim(path, { program: "test" }))
      expect(error).toBeInstanceOf(OwnedElsewhere)
      expect(error).toMatchObject({ pid: child.process.pid, program: "other program", socket: `${path}.sock` })
      expect(error.message).toContain(`other program (process ${child.process.pid}`)
      expect(error.message).not.toMatch(/database is locked|SQLITE/)
    }),
  )

  it.scopedLive("succeeds at once after the holder was killed with SIGKILL", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      for (let round = 0; round < 3; round++) {
        const { child, said } = yield* claimant(path, "victim")
        expect(said).toBe("held")
        child.kill("SIGKILL")
        yield* Effect.promise(() => child.exited)
        expect(existsSync(`${path}.owner`)).toBe(true)
        const scope = yield* Scope.make()
        const lease = yield* claimIn(path, scope)
        expect(lease.owner.pid).toBe(process.pid)
        yield* Scope.close(scope, Exit.void)
      }
    }),
  )

  it.scopedLive("by many processes at once succeeds for exactly one, and the others learn its name", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const names = ["a", "b", "c", "d", "e"]
      const answers = yield* Effect.forEach(names, (name) => claimant(path, name), { concurrency: "unbounded" })
      const winner = names.filter((_, index) => answers[index]?.said === "held")
      expect(winner.length).toBe(1)
      const losers = answers.map((answer) => answer.said).filter((said) => said !== "held")
      expect(losers).toEqual(names.slice(1).map(() => `OwnedElsewhere ${winner[0]}`))
    }),
  )

  it.scopedLive("by many fibers at once succeeds for exactly one", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const results = yield* Effect.all(
        Array.from({ length: 8 }, () => Effect.either(claim(path, { program: "fiber" }))),
        { concurrency: "unbounded" },
      )
      expect(results.filter(Either.isRight).length).toBe(1)
    }),
  )

  it.scopedLive("of one file under every spelling meets the same lock", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      mkdirSync(join(directory, "real"))
      symlinkSync(join(directory, "real"), join(directory, "linked"))
      symlinkSync(join(directory, "real", "store.db"), join(directory, "direct.db"))
      yield* claim(join(directory, "real", "store.db"), { program: "first" })
      const spellings = [
        join(directory, "linked", "store.db"),
        join(directory, "real", "..", "linked", "store.db"),
        relative(process.cwd(), join(directory, "real", "store.db")),
        join(directory, "direct.db"),
      ]
      for (const spelling of spellings) {
        expect((yield* Effect.flip(claim(spelling, { program: "second" })))._tag).toBe("OwnedElsewhere")
      }
    }),
  )

  it.scopedLive("removes the socket that a dead owner left, and never what is not a socket's name", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      writeFileSync(`${path}.sock`, "")
      writeFileSync(path, "")
      const lease = yield* claim(path, { program: "test" })
      expect(existsSync(lease.socket)).toBe(false)
      expect(existsSync(path)).toBe(true)
    }),
  )

  it.scopedLive("around a store is given back only after the store has closed", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const owned = Layer.unwrapScoped(
        Effect.map(claim(path, { program: "test" }), (lease) => SqliteStore.layer({ path: lease.path })),
      )
      const held = yield* Effect.provide(
        Effect.flatMap(Store, (store) =>
          Effect.zipRight(store.mint("entry", 1), Effect.flip(claim(path, { program: "other" }))),
        ),
        owned,
      )
      expect(held._tag).toBe("OwnedElsewhere")
      expect(existsSync(`${path}-wal`)).toBe(false)
      yield* claim(path, { program: "next" })
    }),
  )

  it.scopedLive("in a directory that is a file is a storage error", () =>
    Effect.gen(function* () {
      const directory = yield* temporaryDirectory
      writeFileSync(join(directory, "file"), "")
      const error = yield* Effect.flip(claim(join(directory, "file", "store.db"), { program: "test" }))
      expect(error._tag).toBe("StorageUnavailable")
    }),
  )
})

describe("waiting until a database is free", () => {
  it.scopedLive("ends when nobody holds it", () =>
    Effect.gen(function* () {
      yield* awaitFree(join(yield* temporaryDirectory, "store.db"))
    }),
  )

  it.scopedLive("ends when the holder dies, and lets the waiting process take over", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      const { child } = yield* claimant(path, "victim")
      const taking = yield* Effect.fork(Effect.zipRight(awaitFree(path), claim(path, { program: "heir" })))
      expect(yield* Fiber.poll(taking)).toMatchObject({ _tag: "None" })
      child.kill("SIGKILL")
      const lease = yield* Fiber.join(taking)
      expect(lease.owner.program).toBe("heir")
    }),
  )

  it.scopedLive("never stands in the way of a claim, however many wait", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "store.db")
      for (let round = 0; round < 20; round++) {
        const waiting = yield* Effect.fork(Effect.forever(Effect.zipRight(awaitFree(path), Effect.yieldNow())))
        yield* Effect.scoped(claim(path, { program: "test" }))
        yield* Fiber.interrupt(waiting)
      }
    }),
  )
})

describe("the socket of an owner", () => {
  it("lies beside the database, or under a short name of its own where that path is too long", () => {
    expect(socketPath("/data/store.db")).toBe("/data/store.db.sock")
    const long = `/data/${"x".repeat(120)}/store.db`
    expect(Buffer.byteLength(socketPath(long))).toBeLessThanOrEqual(100)
    expect(socketPath(long)).toBe(socketPath(long))
    expect(socketPath(long)).not.toBe(socketPath(`${long}2`))
  })

  it.scopedLive("with a short name is in a directory of this user alone", () =>
    Effect.gen(function* () {
      const path = join(yield* temporaryDirectory, "y".repeat(120), "store.db")
      const lease = yield* claim(path, { program: "test" })
      expect(Buffer.byteLength(lease.socket)).toBeLessThanOrEqual(100)
      expect(statSync(join(lease.socket, "..")).mode & 0o777).toBe(0o700)
    }),
  )
})
