/**
 * Confinement: no path leads out of a confined workspace, however it is written and whatever links are in the way.
 */
import { constants } from "node:fs"
import { mkdir, readdir, readFile, realpath, rename, symlink, writeFile } from "node:fs/promises"
import { homedir } from "node:os"
import { dirname, join, sep } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import * as fc from "fast-check"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { openInside, resolvePath } from "../../src/tools/workspace.ts"
import { call, failureOf, temporaryDirectory } from "./support.ts"

const inside = (root: string, path: string) => path === root || path.startsWith(root + sep)

/** A root beside a directory that nobody may reach. */
const rooms = Effect.gen(function* () {
  const base = yield* temporaryDirectory
  const [root, outside] = [join(base, "root"), join(base, "outside")]
  yield* Effect.promise(async () => {
    await mkdir(join(root, "a/b"), { recursive: true })
    await mkdir(outside)
    await writeFile(join(outside, "secret"), "secret")
    await writeFile(join(root, "file"), "file")
  })
  return { base, root, outside, workspace: { root, confined: true } }
})

describe("a path of a call", () => {
  it.scoped("is relative to the root, absolute, a file URL, or below the home directory", () =>
    Effect.gen(function* () {
      const { root, workspace } = yield* rooms
      const canonical = (path: string) => Effect.map(resolvePath(workspace, path), (resolved) => resolved.canonical)
      expect(yield* canonical("a/../file")).toBe(join(root, "file"))
      expect(yield* canonical(join(root, "new/one"))).toBe(join(root, "new/one"))
      expect(yield* canonical(`file://${root}/file`)).toBe(join(root, "file"))
      const home = yield* resolvePath({ root, confined: false }, "~/x")
      expect(home.canonical).toBe(join(yield* Effect.promise(() => realpath(homedir())), "x"))
      const shown = yield* resolvePath(workspace, "./a//b/")
      expect([shown.display, (yield* resolvePath(workspace, ".")).display]).toEqual(["a/b", "."])
    }),
  )

  it.scoped("is refused outside a confined root, with the root named, and allowed in an open one", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* rooms
      for (const path of [
        "../outside/secret",
        join(outside, "secret"),
        "..",
        "/",
        "~",
        "/etc/passwd",
        "a/../../outside/new",
      ]) {
        const error = yield* Effect.flip(resolvePath(workspace, path))
        expect(error._tag).toBe("OutsideWorkspace")
        expect(error.message).toContain(`expected a path inside the workspace ${root}, got one outside`)
      }
      const open = yield* resolvePath({ root, confined: false }, "../outside/secret")
      expect(open).toMatchObject({ canonical: join(outside, "secret"), display: join(outside, "secret") })
      // A sibling whose name starts with the root's name is outside.
      expect(Either.isLeft(yield* Effect.either(resolvePath(workspace, `${root}-2/x`)))).toBe(true)
    }),
  )

  it.scoped("follows links from the deepest ancestor that exists, also dangling ones and those in a ring", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* rooms
      yield* Effect.promise(async () => {
        await symlink(outside, join(root, "out"))
        await symlink(join(outside, "not-yet"), join(root, "dangling"))
        await symlink("a/new", join(root, "inner"))
        await symlink("ring-b", join(root, "ring-a"))
        await symlink("ring-a", join(root, "ring-b"))
      })
      for (const path of ["out/secret", "out/new/deep/file", "dangling", "dangling/x", "a/../out/x"]) {
        expect((yield* Effect.flip(resolvePath(workspace, path)))._tag).toBe("OutsideWorkspace")
      }
      expect((yield* resolvePath(workspace, "inner/x")).canonical).toBe(join(root, "a/new/x"))
      expect((yield* Effect.flip(resolvePath(workspace, "ring-a/x"))).message).toBe("ring-a/x: too many symbolic links")
    }),
  )
})

/** A tree of names, some of them links to anywhere, and a path through it. */
const name = fc.constantFrom("a", "b", "c")
const place = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/"))
const leap = fc.oneof(
  place,
  fc
    .tuple(fc.constantFrom("..", "../..", "../outside", "../../outside", "../root"), fc.option(place, { nil: "" }))
    .map((parts) => parts.join("/")),
)
const route = fc.array(
  fc.oneof({ weight: 3, arbitrary: name }, { weight: 1, arbitrary: fc.constantFrom("..", ".", "outside", "root") }),
  { minLength: 1, maxLength: 6 },
)

describe("confinement", () => {
  it.effect(
    "holds for any tree of links and any path: what is resolved is inside and is what the system would open",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(
            fc.array(fc.tuple(place, fc.option(leap)), { maxLength: 8 }),
            route,
            fc.boolean(),
            async (tree, parts, absolute) => {
              await Effect.runPromise(
                Effect.scoped(
                  Effect.gen(function* () {
                    const { root, workspace } = yield* rooms
                    yield* Effect.promise(async () => {
                      for (const [path, target] of tree) {
                        // What is in the way already stays.
                        await mkdir(dirname(join(root, path)), { recursive: true }).catch(() => undefined)
                        if (target === null) await writeFile(join(root, path), "").catch(() => undefined)
                        else await symlink(target, join(root, path)).catch(() => undefined)
                      }
                    })
                    const path = absolute ? join(root, ...parts) : parts.join("/")
                    const resolved = yield* Effect.either(resolvePath(workspace, path))
                    if (Either.isLeft(resolved)) return
                    const { canonical, stat } = resolved.right
                    expect(inside(root, canonical)).toBe(true)
                    if (stat !== null) expect(yield* Effect.promise(() => realpath(canonical))).toBe(canonical)
                    // Nothing on the way is a link: the deepest ancestor that exists is its own canonical form.
                    else {
                      let ancestor = dirname(canonical)
                      while (!(yield* Effect.promise(() => realpath(ancestor).catch(() => ""))))
                        ancestor = dirname(ancestor)
                      expect(yield* Effect.promise(() => realpath(ancestor))).toBe(ancestor)
                    }
                  }),
                ),
              )
            },
          ),
          { numRuns: 150 },
        ),
      ),
  )

  it.scoped("refuses to open a file whose directory was swapped for a link after it was checked", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* rooms
      yield* Effect.promise(() => writeFile(join(root, "a/secret"), "mine"))
      const resolved = yield* resolvePath(workspace, "a/secret")
      yield* Effect.promise(async () => {
        await rename(join(root, "a"), join(root, "moved"))
        await symlink(outside, join(root, "a"))
      })
      const opened = yield* Effect.either(Effect.tryPromise(() => openInside(resolved.canonical, constants.O_RDONLY)))
      expect(Either.isLeft(opened)).toBe(true)
    }),
  )

  it.scoped("holds for every tool", () =>
    Effect.gen(function* () {
      const { root, outside, workspace } = yield* rooms
      yield* Effect.promise(() => symlink(outside, join(root, "out")))
      const refusal = `expected a path inside the workspace ${root}, got one outside`
      const edits = [{ oldText: "secret", newText: "public" }]
      for (const [tool, args] of [
        ["read", { path: "out/secret" }],
        ["write", { path: "out/new", content: "x" }],
        ["write", { path: "../outside/new", content: "x" }],
        ["edit", { path: "out/secret", edits }],
        ["grep", { pattern: "secret", path: "out" }],
        ["find", { pattern: "*", path: "out" }],
        ["ls", { path: ".." }],
      ] as const) {
        expect(yield* failureOf(tool, args, workspace)).toContain(refusal)
      }
      expect(yield* Effect.promise(() => readdir(outside))).toEqual(["secret"])
      expect(yield* Effect.promise(() => readFile(join(outside, "secret"), "utf8"))).toBe("secret")
      // Without confinement the same paths work.
      yield* call("edit", { path: "out/secret", edits }, { root, confined: false })
      expect(yield* Effect.promise(() => readFile(join(outside, "secret"), "utf8"))).toBe("public")
    }).pipe(Effect.provide(BuiltinTools.standalone)),
  )
})
