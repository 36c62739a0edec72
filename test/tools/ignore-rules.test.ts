/**
 * Ignore rules against git itself, on random trees.
 */
import { execFileSync, spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { walk } from "../../src/tools/walk.ts"

const git = (root: string, ...args: ReadonlyArray<string>) =>
  execFileSync("git", ["-C", root, "-c", "core.excludesFile=/dev/null", ...args], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_SYSTEM: "/dev/null" },
  })

/** What git would add: every file that it does not ignore. */
const visibleToGit = (root: string): ReadonlyArray<string> =>
  git(root, "ls-files", "-z", "--others", "--exclude-standard")
    .toString("utf8")
    .split("\0")
    .filter((path) => path !== "")
    .sort()

const visibleToUs = (root: string): ReadonlyArray<string> =>
  [...walk({ root, top: root, ignored: false, at: () => undefined })]
    .filter((entry) => entry.kind !== "directory")
    .map((entry) => entry.path)
    .sort()

const withTree = (files: Readonly<Record<string, string>>, body: (root: string) => void): void => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "super-pi-ignore-")))
  try {
    git(root, "init", "-q")
    for (const [path, content] of Object.entries(files)) {
      mkdirSync(dirname(join(root, path)), { recursive: true })
      writeFileSync(join(root, path), content)
    }
    body(root)
  } finally {
    rmSync(root, { recursive: true, force: true })
  }
}

const segment = fc.constantFrom("a", "b", "ab", "a.b", "x y", "[z]", "#c", "!d")
const path = fc.array(segment, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
const patternPart = fc.constantFrom(
  "a",
  "b",
  "ab",
  "*",
  "a*",
  "*b",
  "?",
  "**",
  "[ab]",
  "[!a]",
  "*.b",
  "x y",
  "\\[z\\]",
  "[z]",
  "\\#c",
  "\\!d",
)
const pattern = fc
  .record({
    negated: fc.boolean(),
    rooted: fc.boolean(),
    parts: fc.array(patternPart, { minLength: 1, maxLength: 3 }),
    directory: fc.boolean(),
    trailing: fc.constantFrom("", "", "", " ", "\r"),
  })
  .map(({ negated, rooted, parts, directory, trailing }) =>
    [negated ? "!" : "", rooted ? "/" : "", parts.join("/"), directory ? "/" : "", trailing].join(""),
  )
const rules = fc.array(fc.oneof({ weight: 6, arbitrary: pattern }, fc.constantFrom("# note", "", "!", "/")), {
  maxLength: 5,
})

describe("ignore rules", () => {
  it("agree with git on random trees with nested rules, negation and info/exclude", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(path, { minLength: 1, maxLength: 12 }),
        fc.array(fc.tuple(fc.oneof(fc.constant(""), path), rules), { maxLength: 3 }),
        rules,
        (paths, files, exclude) => {
          // A path that another one needs as a directory cannot be a file too.
          const plain = paths.filter((one) => !paths.some((other) => other.startsWith(`${one}/`)))
          const directories = new Set(
            plain.flatMap((one) =>
              one
                .split("/")
                .slice(0, -1)
                .map((_, index, all) => all.slice(0, index + 1).join("/")),
            ),
          )
          const tree: Record<string, string> = Object.fromEntries(plain.map((one) => [one, ""]))
          for (const [directory, lines] of files) {
            if (directory === "") tree[".gitignore"] = lines.join("\n")
            else if (directories.has(directory)) tree[`${directory}/.gitignore`] = lines.join("\n")
          }
          withTree(tree, (root) => {
            writeFileSync(join(root, ".git/info/exclude"), exclude.join("\n"))
            expect(visibleToUs(root)).toEqual(visibleToGit(root))
          })
        },
      ),
      { numRuns: 80 },
    )
  }, 120_000)

  it("agree with git where a deeper file takes back what an upper one ignores", () => {
    const files = {
      ".gitignore": "foo\n*.log\n/build/*\n!/build/keep\n",
      "a/.gitignore": "!foo\n!important.log\n",
      "a/foo/x": "",
      "a/foo/y.log": "",
      "a/important.log": "",
      "b/foo/x": "",
      "build/keep/x": "",
      "build/drop/x": "",
    }
    withTree(files, (root) => {
      expect(visibleToUs(root)).toEqual([".gitignore", "a/.gitignore", "a/foo/x", "a/important.log", "build/keep/x"])
      expect(visibleToUs(root)).toEqual(visibleToGit(root))
    })
  })

  it("start over in a nested repository and hold below a directory that the walk starts in", () => {
    withTree(
      {
        ".gitignore": "*.log\nskip/\n",
        "inner/x.log": "",
        "sub/y.log": "",
        "sub/z": "",
        "sub/skip/q": "",
        "skip/r": "",
      },
      (root) => {
        git(join(root, "inner"), "init", "-q")
        expect(visibleToUs(root)).toEqual([".gitignore", "inner/x.log", "sub/z"])
        const from = (start: string) =>
          [...walk({ root: join(root, start), top: root, ignored: false, at: () => undefined })].map(
            (entry) => entry.path,
          )
        expect(from("sub")).toEqual(["z"])
        expect(from("skip")).toEqual(["r"])
      },
    )
  })

  it("hold without a repository, from the workspace root down", () => {
    withTree({ ".gitignore": "*.log\n", "sub/a.log": "", "sub/b": "" }, (root) => {
      rmSync(join(root, ".git"), { recursive: true })
      const found = [...walk({ root: join(root, "sub"), top: root, ignored: false, at: () => undefined })]
      expect(found.map((entry) => entry.path)).toEqual(["b"])
    })
  })

  it("are those that git reports one by one", () => {
    withTree(
      { ".gitignore": "\ufeffmarked\n a\nb \nc\\ \n", marked: "", " a": "", a: "", b: "", "c ": "", c: "" },
      (root) => {
        const ignored = spawnSync("git", ["-C", root, "check-ignore", "marked", " a", "a", "b", "c ", "c"], {
          encoding: "utf8",
        })
        expect(ignored.stdout.split("\n").filter((line) => line !== "")).toEqual(["marked", " a", "b", "c "])
        expect(visibleToUs(root)).toEqual([".gitignore", "a", "c"])
      },
    )
  })
})
