/**
 * Plugin AutoCommit: what a run changed is committed, and nothing else.
 */
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { TaskId } from "../../src/domain/ids.ts"
import type { JsonObject } from "../../src/domain/json.ts"
import { autoCommit, subjectOf } from "../../src/harness/plugins/auto-commit.ts"
import { Store } from "../../src/storage/store.ts"
import { writeFiles } from "../tools/support.ts"
import { gitIn, makeRepository, type World, worldOf } from "./checkpoint-support.ts"

/** What follows a run; `answer` is what the model said last. */
const afterRun = (world: World, options: JsonObject, answer: string | null = "I changed it.\nMore.") =>
  Effect.suspend(() => {
    const hook = autoCommit.hooks.afterRun
    if (hook === undefined) return Effect.dieMessage("no hook")
    const run = { task: TaskId.make(1), outcome: "answered" as const, text: answer, tools: ["write"] }
    const context = {
      options: Schema.decodeSync(autoCommit.options)(options),
      conversation: world.conversation,
      harness: "test",
      agent: {},
      mode: "auto" as const,
      workspace: { root: world.root, confined: true },
      places: { configDir: "/nowhere", dataDir: world.dataDir, discoveryRoots: [], env: {} },
      depth: 0,
      notify: (_level: string, message: string) => Effect.sync(() => void world.notices.push(message)),
    }
    return Effect.orDie(Effect.provideService(hook(run, context), Store, world.store))
  })

/** A repository in which the person has staged, unstaged, untracked and ignored changes. */
const repository = Effect.gen(function* () {
  const world = yield* worldOf()
  yield* makeRepository(world.root)
  yield* world.runBegins
  return world
})

const head = (world: World) => gitIn(world.root, "rev-parse", "HEAD")

describe("at the end of a run", () => {
  it.scoped("what it changed is committed, and what the person changed or staged stays as it is", () =>
    Effect.gen(function* () {
      const world = yield* repository
      const { root } = world
      const before = gitIn(root, "status", "--porcelain")
      yield* world.tool("write", { path: "src/new.ts", content: "new\n" })
      yield* world.tool("write", { path: "README.md", content: "# Better\n" })
      yield* world.tool("write", { path: "ignored.log", content: "log\n" })
      yield* afterRun(world, { enabled: true, commit_prefix: "[agent]" })
      expect(gitIn(root, "log", "-1", "--format=%s")).toBe("[agent] I changed it.\n")
      expect(gitIn(root, "show", "--name-only", "--format=", "HEAD")).toBe("README.md\nsrc/new.ts\n")
      expect(gitIn(root, "status", "--porcelain")).toBe(before)
      expect(gitIn(root, "show", ":src/main.ts")).toBe("export const one = 11\n")
    }),
  )

  it.scoped("a file in which the person had changes is left alone, and named", () =>
    Effect.gen(function* () {
      const world = yield* repository
      const was = head(world)
      yield* world.tool("write", { path: "src/other.ts", content: "agent\n" })
      yield* world.tool("write", { path: "notes.txt", content: "agent\n" })
      yield* afterRun(world, { enabled: true })
      expect(head(world)).toBe(was)
      expect(world.notices).toEqual([
        "nothing was committed; left alone, since they have other changes too: notes.txt, src/other.ts",
      ])
    }),
  )

  it.scoped("nothing is committed unless it is enabled", () =>
    Effect.gen(function* () {
      const world = yield* repository
      const was = head(world)
      yield* world.tool("write", { path: "new", content: "x" })
      yield* afterRun(world, {})
      expect(head(world)).toBe(was)
      expect(world.notices).toEqual([])
    }),
  )

  it.scoped("once more, as after a crash, nothing is committed a second time", () =>
    Effect.gen(function* () {
      const world = yield* repository
      yield* world.tool("write", { path: "new", content: "x" })
      yield* afterRun(world, { enabled: true })
      const once = head(world)
      yield* afterRun(world, { enabled: true })
      expect(head(world)).toBe(once)
    }),
  )

  it.scoped("a hook of the repository that refuses is respected, and the index is as before", () =>
    Effect.gen(function* () {
      const world = yield* repository
      const { root } = world
      writeFileSync(join(root, ".git/hooks/pre-commit"), "#!/bin/sh\necho no commits today >&2\nexit 1\n")
      chmodSync(join(root, ".git/hooks/pre-commit"), 0o755)
      const was = head(world)
      yield* world.tool("write", { path: "new", content: "x" })
      const before = gitIn(root, "status", "--porcelain")
      yield* afterRun(world, { enabled: true })
      expect(head(world)).toBe(was)
      expect(gitIn(root, "status", "--porcelain")).toBe(before)
      expect(world.notices).toEqual(["nothing was committed: no commits today"])
    }),
  )

  for (const [state, make, why] of [
    ["on a detached HEAD", (root: string) => gitIn(root, "checkout", "-q", "--detach"), "HEAD is detached"],
    ["during a merge", (root: string) => writeFileSync(join(root, ".git/MERGE_HEAD"), ""), "a merge is in progress"],
    [
      "during a bisection",
      (root: string) => writeFileSync(join(root, ".git/BISECT_LOG"), ""),
      "a bisection is in progress",
    ],
  ] as const) {
    it.scoped(`nothing is committed ${state}`, () =>
      Effect.gen(function* () {
        const world = yield* repository
        make(world.root)
        const was = head(world)
        yield* world.tool("write", { path: "new", content: "x" })
        yield* afterRun(world, { enabled: true })
        expect(head(world)).toBe(was)
        expect(world.notices).toEqual([`nothing was committed: ${why}`])
      }),
    )
  }

  it.scoped("outside of a repository nothing happens", () =>
    Effect.gen(function* () {
      const world = yield* worldOf()
      yield* writeFiles(world.root, { a: "1" })
      yield* world.tool("write", { path: "a", content: "2" })
      yield* afterRun(world, { enabled: true })
      expect(world.notices).toEqual([])
    }),
  )
})

describe("the subject of a commit", () => {
  it("is the first line of the answer behind the prefix, shortened, or the number of files", () => {
    expect(subjectOf("[x]", "\n Fixed it.\nAnd more", 1)).toBe("[x] Fixed it.")
    expect(subjectOf("", null, 2)).toBe("Change 2 files")
    expect(subjectOf("[x]", "y".repeat(200), 1)).toHaveLength(72)
  })
})
