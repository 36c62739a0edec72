/**
 * Plugin GitCheckpoint and undo: what the calls of a turn changed is restored to the last byte, and nothing else is touched.
 */
import { randomUUID } from "node:crypto"
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import fc from "fast-check"
import { gitBlobs } from "../../src/harness/plugins/git-checkpoint/git-blobs.ts"
import { undo } from "../../src/harness/plugins/git-checkpoint/undo.ts"
import { StorageUnavailable } from "../../src/storage/errors.ts"
import type { StoreService } from "../../src/storage/store.ts"
import { writeFiles } from "../tools/support.ts"
import { gitIn, makeRepository, picture, worldOf } from "./checkpoint-support.ts"

describe("a repository", () => {
  it.scoped("that was worked on by write, edit and commands is byte-identical after the undo, its .git included", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* makeRepository(root)
      const before = picture(root)
      const status = gitIn(root, "status", "--porcelain=v2", "--branch")
      const stash = gitIn(root, "stash", "list")
      yield* world.runBegins
      yield* world.tool("write", { path: "src/new/deep/file.ts", content: "new\n" })
      yield* world.tool("edit", { path: "src/main.ts", edits: [{ oldText: "11", newText: "12" }] })
      yield* world.turnEnds
      yield* world.tool("bash", {
        command:
          "rm src/other.ts notes.txt; echo x > secret.env; echo y >> debug.log; chmod 755 README.md; mkdir empty; ln -s README.md link",
      })
      yield* world.turnEnds
      expect(picture(root)).not.toEqual(before)
      expect((yield* world.list).map(({ id, run }) => [id, run])).toEqual([
        [2, 1],
        [1, 1],
      ])
      const result = yield* world.undo()
      expect(result.left).toEqual([])
      expect(result.undone).toEqual([1, 2])
      expect(picture(root)).toEqual(before)
      expect(gitIn(root, "status", "--porcelain=v2", "--branch")).toBe(status)
      expect(gitIn(root, "stash", "list")).toBe(stash)
    }),
  )

  it.scoped("gets back its index, HEAD, branches and stash when the agent itself used git", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* makeRepository(root)
      const facts = () => ({
        files: Object.fromEntries(Object.entries(picture(root)).filter(([path]) => !path.startsWith(".git/objects"))),
        head: gitIn(root, "rev-parse", "HEAD"),
        refs: gitIn(root, "for-each-ref"),
        stash: gitIn(root, "stash", "list"),
      })
      const before = facts()
      const command =
        "git checkout -q -b other && git add -A && git commit -q -m theirs && git stash drop -q && git tag v1"
      const result = yield* world.tool("bash", { command })
      expect(result.isError).toBe(false)
      expect(facts()).not.toEqual(before)
      yield* world.undo()
      expect(facts()).toEqual(before)
      expect(gitIn(root, "fsck", "--no-dangling")).toBe("")
    }),
  )

  it.scoped("whose files are converted when they are checked in is restored as it was on disk", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      const many = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`unix/${at}.txt`, `line ${at}\n`]))
      yield* writeFiles(root, {
        ...many,
        ".gitattributes": "*.txt text\n*.up filter=up\n*.id ident\n",
        "dos.txt": "one\r\ntwo\r\n",
        "mixed.txt": "one\r\ntwo\n",
        "shout.up": "quiet\n",
        "what.id": "$Id$\n",
      })
      gitIn(root, "init", "-q")
      gitIn(root, "config", "filter.up.clean", "tr a-z A-Z")
      gitIn(root, "config", "filter.up.smudge", "cat")
      gitIn(root, "add", ".")
      gitIn(root, "commit", "-q", "-m", "first")
      // Young files are copied whatever git has; the clock of the file system has to go on for the rest.
      const { ctimeMs } = statSync(join(root, "what.id"))
      yield* Effect.promise(async () => {
        while (Date.now() < ctimeMs + 150) await new Promise((resolve) => setImmediate(resolve))
      })
      const files = Object.keys(picture(root)).filter((path) => !path.startsWith(".git/"))
      const sizes = new Map(files.map((path) => [path, statSync(join(root, path)).size]))
      const held = yield* Effect.promise(() => gitBlobs(root, sizes))
      expect([...held.keys()].sort()).toEqual([".gitattributes", ...Object.keys(many)].sort())
      const before = picture(root)
      yield* world.tool("bash", { command: "for f in *.txt *.up *.id unix/*; do echo changed > $f; done" })
      expect(readFileSync(join(root, "dos.txt"), "utf8")).toBe("changed\n")
      yield* world.undo()
      expect(picture(root)).toEqual(before)
    }),
  )

  it.scoped("is watched also from a directory of it, and from a work tree of its own", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const main = join(world.root, "..", "main")
      mkdirSync(main)
      yield* makeRepository(main)
      rmSync(world.root, { recursive: true })
      gitIn(main, "worktree", "add", "-q", world.root, "HEAD")
      const before = { here: picture(world.root), head: gitIn(world.root, "rev-parse", "HEAD") }
      const index = gitIn(world.root, "rev-parse", "--git-path", "index").trim()
      const bytes = readFileSync(index)
      const made = yield* world.tool("bash", { command: "echo z > z && git add z && git commit -q -m z" })
      expect(made.isError).toBe(false)
      expect(gitIn(world.root, "rev-parse", "HEAD")).not.toBe(before.head)
      yield* world.undo()
      expect({ here: picture(world.root), head: gitIn(world.root, "rev-parse", "HEAD") }).toEqual(before)
      expect(readFileSync(index).equals(bytes)).toBe(true)
    }),
  )
})

describe("a directory without git", () => {
  it.scoped("gets back contents, modes, links, empty directories, and what became something else", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* writeFiles(root, {
        "a.txt": "a",
        "run.sh": "#!/bin/sh\n",
        "d/x": "x",
        "d/y": "y",
        "empty/": "",
        t: "t",
        bin: new Uint8Array([0, 255, 1]),
      })
      chmodSync(join(root, "run.sh"), 0o4751)
      chmodSync(join(root, "d"), 0o711)
      symlinkSync("a.txt", join(root, "link"))
      symlinkSync("nowhere", join(root, "dangling"))
      const before = picture(root)
      yield* world.tool("bash", {
        command: [
          "echo A > a.txt; chmod 644 run.sh; rm -r d; echo now a file > d; rmdir empty; rm t; mkdir -p t/u; echo v > t/u/v",
          "ln -sf other link; rm dangling; echo file > dangling; printf '\\1' > bin; mkdir -p new/deep; echo n > new/deep/n",
        ].join("\n"),
      })
      yield* world.undo()
      expect(picture(root)).toEqual(before)
    }),
  )

  it.scoped("a file that write replaces through a link is restored where it is", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* writeFiles(world.root, { "real.txt": "real" })
      symlinkSync("real.txt", join(world.root, "link"))
      const before = picture(world.root)
      yield* world.tool("write", { path: "link", content: "through" })
      expect(readFileSync(join(world.root, "real.txt"), "utf8")).toBe("through")
      yield* world.undo()
      expect(picture(world.root)).toEqual(before)
    }),
  )
})

describe("checkpoints", () => {
  it.scoped("are one for each turn that changed something; looking around makes none", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* writeFiles(world.root, { a: "1" })
      yield* world.runBegins
      yield* world.tool("bash", { command: "cat a; ls; touch a" })
      yield* world.tool("read", { path: "a" })
      yield* world.turnEnds
      expect(yield* world.list).toEqual([])
      yield* Effect.all(
        [
          world.tool("write", { path: "b", content: "b" }),
          world.tool("write", { path: "c", content: "c" }),
          world.tool("bash", { command: "echo d > d" }),
        ],
        { concurrency: "unbounded" },
      )
      yield* world.turnEnds
      const [only, ...others] = yield* world.list
      expect(others).toEqual([])
      expect(only?.paths.map(({ path, change }) => [path.slice(world.root.length + 1), change])).toEqual([
        ["b", "created"],
        ["c", "created"],
        ["d", "created"],
      ])
    }),
  )

  it.scoped("of calls that ran at once hold what was before all of them, in whatever order they begin and end", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* writeFiles(root, { shared: "0", other: "0" })
      const before = picture(root)
      const command = (run: Effect.Effect<void>) =>
        world.wrap(
          { id: `c${Math.random()}`, name: "bash", args: {}, effects: ["exec"] },
          Effect.as(run, { output: [] }),
        )
      const [begun, half, over] = yield* Effect.all([
        Deferred.make<void>(),
        Deferred.make<void>(),
        Deferred.make<void>(),
      ])
      const first = command(
        Effect.gen(function* () {
          writeFileSync(join(root, "shared"), "1")
          mkdirSync(join(root, "made"))
          yield* Deferred.succeed(begun, undefined)
          yield* Deferred.await(half)
          writeFileSync(join(root, "made", "late"), "1")
          yield* Deferred.await(over)
        }),
      )
      const second = Effect.zipRight(
        Deferred.await(begun),
        command(
          Effect.gen(function* () {
            // Looked at in the middle of the first, and over before it.
            writeFileSync(join(root, "shared"), "2")
            writeFileSync(join(root, "other"), "2")
            yield* Deferred.succeed(half, undefined)
          }),
        ).pipe(Effect.zipRight(Deferred.succeed(over, undefined))),
      )
      yield* Effect.all([first, second], { concurrency: "unbounded" })
      const result = yield* world.undo()
      expect(result.left).toEqual([])
      expect(picture(root)).toEqual(before)
    }),
  )

  it.scoped("are taken back by run, or back to before a given one, and brought back by undoing the undo", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const states: Array<Record<string, string>> = []
      const write = (content: string) =>
        Effect.gen(function* () {
          states.push(picture(world.root))
          yield* world.runBegins
          yield* world.tool("write", { path: "f", content })
          yield* world.turnEnds
          yield* world.tool("write", { path: `g-${content}`, content })
          yield* world.turnEnds
        })
      for (const content of ["one", "two", "three"]) yield* write(content)
      const last = picture(world.root)
      const first = yield* world.undo()
      expect(first.undone).toEqual([5, 6])
      expect(picture(world.root)).toEqual(states[2])
      yield* world.undo(1)
      expect(picture(world.root)).toEqual(states[0])
      expect(yield* Effect.flip(world.undo())).toMatchObject({ _tag: "NothingToUndo" })
      yield* world.undo(8)
      expect(picture(world.root)).toEqual(states[2])
      yield* world.undo(7)
      expect(picture(world.root)).toEqual(last)
      expect((yield* Effect.flip(world.undo(7))).message).toContain("checkpoint 7 is undone already; undo 10")
      expect((yield* world.undo(1)).undone).toEqual([1, 2, 3, 4, 5, 6])
      expect(picture(world.root)).toEqual(states[0])
    }),
  )

  it.scoped("go on with numbers of their own after an undo", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* world.tool("write", { path: "a", content: "1" })
      yield* world.turnEnds
      yield* world.undo()
      yield* world.runBegins
      yield* world.tool("write", { path: "a", content: "2" })
      yield* world.turnEnds
      const all = yield* world.list
      expect(all.map(({ id, kind, run, undone_by }) => [id, kind, run, undone_by])).toEqual([
        [3, "turn", 2, null],
        [2, "undo", 1, null],
        [1, "turn", 1, 2],
      ])
      yield* world.undo()
      expect(picture(world.root)).toEqual({})
    }),
  )

  it.scoped("do not see the node's own database and data in the workspace", () =>
    Effect.gen(function* () {
      const world = yield* worldOf({ store: (real, root) => ({ ...real, location: join(root, "super-pi.db") }) })
      yield* writeFiles(world.root, { "super-pi.db": "1", "super-pi.db-wal": "1", a: "1" })
      yield* world.tool("bash", { command: "for f in *; do echo 2 > $f; done" })
      yield* world.undo()
      const now = ["super-pi.db", "super-pi.db-wal", "a"].map((name) => readFileSync(join(world.root, name), "utf8"))
      expect(now).toEqual(["2\n", "2\n", "1"])
    }),
  )
})

describe("what somebody else changed since", () => {
  it.scoped("is not overwritten, and is named; with force it is, and comes back with the undo of the undo", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* writeFiles(root, { a: "1", b: "1" })
      const before = picture(root)
      yield* world.tool("bash", { command: "echo 2 > a; echo 2 > b" })
      writeFileSync(join(root, "b"), "mine\n")
      const changed = picture(root)
      const refused = yield* Effect.flip(world.undo())
      expect(refused).toMatchObject({ _tag: "UndoRefused" })
      expect(refused.message).toContain(`${join(root, "b")}: changed since`)
      expect(picture(root)).toEqual(changed)
      const forced = yield* world.undo(null, true)
      expect(picture(root)).toEqual(before)
      yield* world.undo(forced.id)
      expect(picture(root)).toEqual(changed)
    }),
  )

  it.scoped("between two calls of a turn is noticed", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* world.tool("write", { path: "a", content: "agent" })
      writeFileSync(join(world.root, "a"), "mine")
      yield* world.tool("write", { path: "a", content: "agent again" })
      expect((yield* Effect.flip(world.undo())).message).toContain("somebody else changed it between")
    }),
  )

  it.scoped("stays in a directory that the agent made", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* world.tool("write", { path: "d/a", content: "agent" })
      writeFileSync(join(world.root, "d/mine"), "mine")
      const result = yield* world.undo()
      expect(result.left).toEqual([
        { path: join(world.root, "d"), reason: "the directory stays: something else is in it" },
      ])
      expect(Object.keys(picture(world.root))).toEqual(["d", "d/mine"])
      expect(result.undone).toEqual([1])
    }),
  )
})

describe("limits", () => {
  it.scoped("a file too large to be kept is named, and the rest is restored with force", () =>
    Effect.gen(function* () {
      const world = yield* worldOf({ plugin: { maxFileBytes: 100 } })
      yield* writeFiles(world.root, { large: "x".repeat(200), small: "s" })
      yield* world.tool("bash", { command: "echo 1 > large; echo 1 > small" })
      expect((yield* Effect.flip(world.undo())).message).toContain(
        "what was there before was not kept (a file of 200 bytes",
      )
      const result = yield* world.undo(null, true)
      expect(result.left.map(({ path }) => path)).toEqual([join(world.root, "large")])
      expect(readFileSync(join(world.root, "small"), "utf8")).toBe("s")
    }),
  )

  it.scoped("a workspace with too many files is said once; write and edit stay undoable", () =>
    Effect.gen(function* () {
      const world = yield* worldOf({ plugin: { maxFiles: 3 } })
      yield* writeFiles(world.root, { a: "a", b: "b", c: "c", d: "d" })
      yield* world.tool("bash", { command: "echo 1 > a" })
      yield* world.tool("bash", { command: "echo 2 > a" })
      expect(world.notices).toEqual([expect.stringContaining("holds more than 3 files")])
      yield* world.tool("write", { path: "b", content: "agent" })
      yield* world.undo()
      expect(readFileSync(join(world.root, "b"), "utf8")).toBe("b")
    }),
  )

  it.scoped("a call whose checkpoint cannot be committed runs with a warning, or not at all where it is required", () =>
    Effect.gen(function* () {
      const store = (real: StoreService): StoreService => ({ ...real, commit: () => Effect.fail(unavailable) })
      const lenient = yield* worldOf({ store })
      yield* lenient.tool("write", { path: "a", content: "1" })
      expect(existsSync(join(lenient.root, "a"))).toBe(true)
      expect(lenient.notices).toEqual([expect.stringContaining("write cannot be undone: no checkpoint was taken")])
      const strict = yield* worldOf({ store, plugin: { required: true } })
      const result = yield* strict.tool("write", { path: "a", content: "1" })
      expect(result.isError).toBe(true)
      expect(existsSync(join(strict.root, "a"))).toBe(false)
    }),
  )
})

const unavailable = new StorageUnavailable({ location: "memory", cause: "down", advice: "Wait." })

/** A store whose process dies: from then on nothing is committed and nothing answers. */
const mortal = () => {
  let commits = Number.POSITIVE_INFINITY
  return {
    /** Lets so many commits more through. */
    diesAfter: (count: number) => {
      commits = count
    },
    store: (real: StoreService): StoreService => ({
      ...real,
      commit: (commit) => Effect.suspend(() => (commits-- > 0 ? real.commit(commit) : Effect.fail(unavailable))),
    }),
  }
}

describe("a death", () => {
  for (const reach of ["workspace", "path"] as const) {
    it.scoped(
      `after a change of a ${reach}, before it is noted down, leaves a checkpoint that the next process undoes`,
      () =>
        Effect.gen(function* () {
          const { diesAfter, store } = mortal()
          const world = yield* worldOf({ store })
          const { root } = world
          yield* writeFiles(root, { a: "1", b: "1" })
          const before = picture(root)
          diesAfter(1)
          if (reach === "workspace") yield* world.tool("bash", { command: "echo 2 > a; rm b; echo new > c" })
          else yield* world.tool("write", { path: "deep/er/a", content: "2" })
          expect((yield* world.list).map(({ files, open }) => ({ files, open }))).toEqual([{ files: 0, open: true }])
          const result = yield* world.restarted().undo()
          expect(result.undone).toEqual([1])
          expect(picture(root)).toEqual(before)
          yield* world.undo(result.id)
          expect(picture(root)).not.toEqual(before)
        }),
    )
  }

  it.scoped("in the middle of a write leaves no file beside it, and what is being written stays", () =>
    Effect.gen(function* () {
      const { diesAfter, store } = mortal()
      const world = yield* worldOf({ store })
      const { root } = world
      yield* writeFiles(root, { a: "1" })
      const before = picture(root)
      diesAfter(1)
      yield* world.tool("write", { path: "deep/a", content: "2" })
      const left = join(root, "deep", `.super-pi-${randomUUID()}.tmp`)
      writeFileSync(left, "half")
      const old = new Date(performance.timeOrigin - 1000)
      utimesSync(left, old, old)
      const young = join(root, `.super-pi-${randomUUID()}.tmp`)
      writeFileSync(young, "being written")
      yield* world.restarted().undo()
      rmSync(young)
      expect(picture(root)).toEqual(before)
    }),
  )

  it.scoped("before a change leaves nothing to undo", () =>
    Effect.gen(function* () {
      const { diesAfter, store } = mortal()
      const world = yield* worldOf({ store })
      yield* writeFiles(world.root, { a: "1" })
      diesAfter(1)
      yield* world.wrap({ id: "c", name: "bash", args: {}, effects: ["exec"] }, Effect.succeed({ output: [] }))
      const next = world.restarted()
      diesAfter(Number.POSITIVE_INFINITY)
      yield* next.tool("write", { path: "b", content: "2" })
      expect((yield* world.undo()).restored).toEqual([join(world.root, "b")])
      expect(readFileSync(join(world.root, "a"), "utf8")).toBe("1")
    }),
  )

  it.scoped("during an undo leaves the rest to the next undo", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      const { root } = world
      yield* writeFiles(root, { a: "1", b: "1", c: "1" })
      const before = picture(root)
      yield* world.tool("bash", { command: "for f in a b c; do echo 2 > $f; done" })
      const after = picture(root)
      // The intent is committed, a file of three is restored, the outcome is not committed.
      let commits = 0
      const dying: StoreService = {
        ...world.store,
        commit: (commit) => (++commits > 1 ? Effect.fail(unavailable) : world.store.commit(commit)),
      }
      yield* Effect.flip(undo(dying, world.conversation, { id: null, force: false }))
      writeFileSync(join(root, "b"), "2\n")
      writeFileSync(join(root, "c"), "2\n")
      const result = yield* world.undo()
      expect(result.left).toEqual([])
      expect(picture(root)).toEqual(before)
      yield* world.undo(result.id)
      expect(Object.keys(picture(root))).toEqual(Object.keys(after))
    }),
  )
})

describe("any sequence of commands", () => {
  const name = fc.constantFrom("a", "b", "d/a", "d/e/f", "x y", "ü")
  const operation = fc.oneof(
    fc.tuple(name, fc.string({ maxLength: 20 })).map(([path, content]) => (root: string) => {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }),
    name.map((path) => (root: string) => rmSync(join(root, path), { recursive: true, force: true })),
    fc.tuple(name, fc.constantFrom(0o600, 0o644, 0o755)).map(([path, mode]) => (root: string) => {
      chmodSync(join(root, path), mode)
    }),
    fc.tuple(name, fc.string({ minLength: 1, maxLength: 8 })).map(([path, target]) => (root: string) => {
      symlinkSync(target.replaceAll("\0", "0"), join(root, path))
    }),
    name.map((path) => (root: string) => mkdirSync(join(root, path), { recursive: true })),
  )
  const attempt = (root: string, operations: ReadonlyArray<(root: string) => void>) => {
    for (const run of operations) {
      try {
        run(root)
      } catch {
        // What cannot be done is not done.
      }
    }
  }

  it.effect("is undone exactly, as a whole and in parts, and redone exactly", () =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(
          fc.array(operation, { maxLength: 12 }),
          fc.array(fc.array(operation, { maxLength: 6 }), { minLength: 1, maxLength: 4 }),
          (first, turns) =>
            Effect.runPromise(
              Effect.scoped(
                Effect.gen(function* () {
                  const world = yield* worldOf()
                  attempt(world.root, first)
                  const states = [picture(world.root)]
                  for (const turn of turns) {
                    yield* world.wrap(
                      { id: "c", name: "bash", args: {}, effects: ["exec"] },
                      Effect.sync(() => {
                        attempt(world.root, turn)
                        return { output: [] }
                      }),
                    )
                    yield* world.turnEnds
                    states.push(picture(world.root))
                  }
                  const made = yield* world.list
                  if (made.length === 0) {
                    expect(states.at(-1)).toEqual(states[0])
                    return
                  }
                  const result = yield* world.undo(Math.min(...made.map(({ id }) => id)))
                  expect(picture(world.root)).toEqual(states[0])
                  if (result.restored.length === 0) {
                    // Turns that took each other back: they are undone, and there is nothing to bring back.
                    expect(states.at(-1)).toEqual(states[0])
                    return
                  }
                  yield* world.undo(result.id)
                  expect(picture(world.root)).toEqual(states.at(-1))
                  const newest = Math.max(...made.map(({ id }) => id))
                  yield* world.undo(newest)
                  const earlier = states
                    .filter((state) => JSON.stringify(state) !== JSON.stringify(states.at(-1)))
                    .at(-1)
                  expect(picture(world.root)).toEqual(earlier)
                }),
              ),
            ),
        ),
        { numRuns: 60 },
      ),
    ),
  )
})
