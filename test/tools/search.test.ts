/**
 * `grep`, `find` and `ls`: what is found, what is left out, and in which order.
 */
import { symlink, truncate } from "node:fs/promises"
import { join } from "node:path"
import { expect, layer } from "@effect/vitest"
import { Effect } from "effect"
import { BuiltinTools } from "../../src/tools/builtin-tools.ts"
import { call, failureOf, outputOf, textCall, workspaceWith } from "./support.ts"

layer(BuiltinTools.standalone)("grep", (it) => {
  it.scoped("gives matching lines with path and number, in path order", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "b.txt": "x\nneedle b\n",
        "a/z.txt": "needle z\r\n",
        "a.txt": "a needle\n",
      })
      const result = yield* call("grep", { pattern: "needle" }, workspace)
      expect(outputOf(result)).toBe("a/z.txt:1:needle z\na.txt:1:a needle\nb.txt:2:needle b")
      expect(result.structuredOutput).toMatchObject({ matches: 3, files: 3, searched: 3, limit: "none" })
      expect(yield* textCall("grep", { pattern: "needle", path: "a" }, workspace)).toBe("a/z.txt:1:needle z")
      expect(yield* textCall("grep", { pattern: "needle", path: "a/z.txt" }, workspace)).toBe("a/z.txt:1:needle z")
      expect(yield* textCall("grep", { pattern: "nothing" }, workspace)).toBe("No matches in 3 files.")
    }),
  )

  it.scoped("shows context once where matches are close, and a line between places", () =>
    Effect.gen(function* () {
      const lines = ["1", "2 x", "3", "4 x", "5", "6", "7", "8", "9 x"]
      const workspace = yield* workspaceWith({ "a.txt": lines.join("\n") })
      expect(yield* textCall("grep", { pattern: "x", context: 1 }, workspace)).toBe(
        "a.txt-1-1\na.txt:2:2 x\na.txt-3-3\na.txt:4:4 x\na.txt-5-5\n--\na.txt-8-8\na.txt:9:9 x",
      )
    }),
  )

  it.scoped("takes regular expressions, plain text, case and globs", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "a.ts": "Foo(1)\n",
        "b.js": "foo(2)\n",
        "src/c.ts": "foo(3)\n",
        "src/c.test.ts": "foo(4)\n",
      })
      const grep = (args: Record<string, string | boolean>) => textCall("grep", { pattern: "foo", ...args }, workspace)
      expect(yield* grep({ ignoreCase: true })).toBe(
        "a.ts:1:Foo(1)\nb.js:1:foo(2)\nsrc/c.test.ts:1:foo(4)\nsrc/c.ts:1:foo(3)",
      )
      expect(yield* grep({ pattern: "(?i)FOO", glob: "*.js" })).toBe("b.js:1:foo(2)")
      expect(yield* grep({ pattern: "foo\\(\\d\\)", glob: "src/**/*.{ts,tsx}" })).toBe(
        "src/c.test.ts:1:foo(4)\nsrc/c.ts:1:foo(3)",
      )
      expect(yield* grep({ glob: "!*.test.ts", path: "src" })).toBe("src/c.ts:1:foo(3)")
      expect(yield* grep({ pattern: "foo(", literal: true, glob: "*.js" })).toBe("b.js:1:foo(2)")
      // An escape that only the older syntax knows, as models write it.
      expect(yield* grep({ pattern: "foo\\-?\\(2" })).toBe("b.js:1:foo(2)")
      expect(yield* failureOf("grep", { pattern: "foo(" }, workspace)).toMatch(
        /^pattern: expected a regular expression, got "foo\(" \(.*\)\. To search for that text, set literal\.$/,
      )
    }),
  )

  it.scoped("leaves out what git ignores, .git and binary files, follows no links, and looks into hidden files", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        ".gitignore": "out/\n*.log\n!keep.log\n",
        ".git/config": "needle",
        ".git/info/exclude": "private\n",
        "out/x.txt": "needle",
        "a.log": "needle",
        "keep.log": "needle",
        private: "needle",
        "sub/.gitignore": "*.tmp\n/only\n",
        "sub/a.tmp": "needle",
        "sub/only": "needle",
        "sub/deep/only": "needle",
        ".hidden": "needle",
        "x.bin": Buffer.from("needle\0"),
        "utf16.txt": Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from("needle ü\n", "utf16le")]),
      })
      yield* Effect.promise(() => symlink("..", join(workspace.root, "sub/loop")))
      expect(yield* textCall("grep", { pattern: "needle" }, workspace)).toBe(
        ".hidden:1:needle\nkeep.log:1:needle\nsub/deep/only:1:needle\nutf16.txt:1:needle ü\n\n[1 binary file skipped.]",
      )
      // What is asked for by name is searched although git ignores it.
      expect(yield* textCall("grep", { pattern: "needle", path: "out" }, workspace)).toBe("out/x.txt:1:needle")
      expect(yield* textCall("grep", { pattern: "needle", path: "a.log" }, workspace)).toBe("a.log:1:needle")
    }),
  )

  it.scoped("stops at its limits and says so, and shows long lines around the match", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "many.txt": "needle\n".repeat(500),
        "long.txt": `${"-".repeat(5000)}needle${"-".repeat(5000)}\n`,
        "wide/w.txt": `needle ${"w".repeat(380)}\n`.repeat(500),
      })
      const few = yield* textCall("grep", { pattern: "needle", path: "many.txt", limit: 2 }, workspace)
      expect(few).toBe(
        "many.txt:1:needle\nmany.txt:2:needle\n\n[Stopped at 2 matches; there are more. Narrow the search, or raise limit.]",
      )
      const exact = yield* textCall("grep", { pattern: "needle", path: "many.txt", limit: 500 }, workspace)
      expect(exact).not.toContain("Stopped")
      const long = yield* textCall("grep", { pattern: "needle", path: "long.txt" }, workspace)
      expect(long).toMatch(/^long\.txt:1:…-{100}needle-{294}… \[line of 10006 characters\]$/)
      const wide = yield* textCall("grep", { pattern: "needle", path: "wide", limit: 2000 }, workspace)
      expect(wide.length).toBeLessThan(60_000)
      expect(wide).toContain("[Stopped because the result is long; there may be more. Narrow the search.]")
    }),
  )

  it.scoped("searches a sparse file of 1 GB beside others without trouble", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({ "a.txt": "needle\n", sparse: "" })
      yield* Effect.promise(() => truncate(join(workspace.root, "sparse"), 1024 ** 3))
      expect(yield* textCall("grep", { pattern: "needle" }, workspace)).toBe(
        "a.txt:1:needle\n\n[1 binary file skipped.]",
      )
    }),
  )

  it.scoped("names path and expectation for wrong arguments", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith()
      expect(yield* failureOf("grep", {}, workspace)).toBe("pattern: expected a non-empty string, got nothing")
      expect(yield* failureOf("grep", { pattern: "x", context: 51 }, workspace)).toBe(
        "context: expected an integer from 0 to 50, got 51",
      )
      expect(yield* failureOf("grep", { pattern: "x", path: "none" }, workspace)).toContain(
        "none: no such file or directory",
      )
      expect(yield* failureOf("grep", { pattern: "x", path: "/etc" }, workspace)).toBe(
        `/etc: expected a path inside the workspace ${workspace.root}, got one outside`,
      )
    }),
  )
})

layer(BuiltinTools.standalone)("find", (it) => {
  const files = {
    "a.ts": "",
    "src/b.ts": "",
    "src/b.test.ts": "",
    "src/deep/c.ts": "",
    "node_modules/x/d.ts": "",
    ".gitignore": "node_modules\n",
    ".git/e.ts": "",
  }

  it.scoped("matches names at any depth, and paths when the pattern has a slash", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith(files)
      expect(yield* textCall("find", { pattern: "*.ts" }, workspace)).toBe(
        "a.ts\nsrc/b.test.ts\nsrc/b.ts\nsrc/deep/c.ts",
      )
      expect(yield* textCall("find", { pattern: "src/*.ts" }, workspace)).toBe("src/b.test.ts\nsrc/b.ts")
      expect(yield* textCall("find", { pattern: "**/*.test.ts" }, workspace)).toBe("src/b.test.ts")
      expect(yield* textCall("find", { pattern: "*.ts", path: "src/deep" }, workspace)).toBe("src/deep/c.ts")
      expect(yield* textCall("find", { pattern: "deep" }, workspace)).toBe("src/deep/")
      expect(yield* textCall("find", { pattern: "*", type: "directory" }, workspace)).toBe("src/\nsrc/deep/")
      expect(yield* textCall("find", { pattern: "d.ts", includeIgnored: true }, workspace)).toBe("node_modules/x/d.ts")
      expect(yield* textCall("find", { pattern: "*.py" }, workspace)).toBe("Nothing matches *.py in the workspace.")
    }),
  )

  it.scoped("stops at its limit and refuses what is not a directory", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith(files)
      expect(yield* textCall("find", { pattern: "*.ts", limit: 1 }, workspace)).toBe(
        "a.ts\n\n[Stopped at 1 path; there are more. Narrow the search, or raise limit.]",
      )
      expect(yield* failureOf("find", { pattern: "*", path: "a.ts" }, workspace)).toBe(
        "a.ts: expected a directory, got a file",
      )
      expect(yield* failureOf("find", { pattern: "*", type: "files" }, workspace)).toBe(
        'type: expected one of "file", "directory", "any", got "files"',
      )
    }),
  )

  it.scoped("ends in a tree of links that lead to each other, and in a deep one", () =>
    Effect.gen(function* () {
      const deep = `${"d/".repeat(300)}end.txt`
      const workspace = yield* workspaceWith({ [deep]: "", "x/": "", "y/": "" })
      yield* Effect.promise(async () => {
        await symlink("../y", join(workspace.root, "x/y"))
        await symlink("../x", join(workspace.root, "y/x"))
      })
      expect(yield* textCall("find", { pattern: "end.txt" }, workspace)).toBe(deep)
      expect(yield* textCall("find", { pattern: "[xy]" }, workspace)).toBe("x/\nx/y\ny/\ny/x")
    }),
  )
})

layer(BuiltinTools.standalone)("ls", (it) => {
  it.scoped("lists directories, files with their size and links, and names what is ignored apart", () =>
    Effect.gen(function* () {
      const workspace = yield* workspaceWith({
        "b/": "",
        "a.txt": "12345",
        ".env": "",
        "node_modules/x": "",
        ".gitignore": "node_modules/\n",
      })
      yield* Effect.promise(() => symlink("b", join(workspace.root, "c")))
      expect(yield* textCall("ls", {}, workspace)).toBe(
        ".env (0 bytes)\n.gitignore (14 bytes)\na.txt (5 bytes)\nb/\nc -> b\n\n[Ignored, not shown: node_modules.]",
      )
      expect(yield* textCall("ls", { includeIgnored: true, limit: 1 }, workspace)).toBe(
        ".env (0 bytes)\n\n[5 more entries; raise limit, or use find with a pattern.]",
      )
      expect(yield* textCall("ls", { path: "b" }, workspace)).toBe("b has no entries to show.")
      expect(yield* failureOf("ls", { path: "a.txt" }, workspace)).toBe("a.txt: expected a directory, got a file")
      expect(yield* failureOf("ls", { path: 5 }, workspace)).toBe("path: expected a non-empty string, got 5")
    }),
  )
})
