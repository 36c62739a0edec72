/**
 * Keeps the house as `docs/architecture.md` draws it: who may import whom, what every file carries, what may not be in it.
 */
import { readFileSync } from "node:fs"
import path from "node:path"
import { describe, expect, it } from "vitest"
import {
  cycles,
  declaredPackages,
  domainIsPure,
  heads,
  importDirection,
  lengths,
  typeEscapes,
  unknownFolders,
  unusedExports,
} from "./rules.ts"
import { filesBelow, root, sourcesBelow } from "./source.ts"

const src = sourcesBelow("src")
const others = ["test", "bench", "examples", "stress"].flatMap(sourcesBelow)
const manifest: {
  readonly dependencies: Record<string, string>
  readonly devDependencies: Record<string, string>
  readonly peerDependencies: Record<string, string>
} = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"))

/** Files that the world starts or imports: their exports need no taker in the project. */
const entries = [
  "src/index.ts",
  "src/nact.ts",
  "src/testing.ts",
  "src/cli.ts",
  "src/node.ts",
  "src/tools/sandbox-worker.ts",
]

describe("the house", () => {
  it("has no empty plan: there are source files to check", () => {
    expect(src.length).toBeGreaterThan(10)
  })

  it("imports downwards only: domain ← storage, models, tools ← harness ← actors ← supervisors; protocols see contracts", () => {
    expect([...unknownFolders(src), ...importDirection(src)]).toEqual([])
  })

  it("keeps the domain pure: no I/O, no clock, no packages but pure ones", () => {
    expect(domainIsPure(src)).toEqual([])
  })

  it("has no import cycles at run time", () => {
    expect(cycles(src)).toEqual([])
  })

  it("imports only packages that package.json declares", () => {
    const names = Object.keys(manifest.dependencies)
    expect(declaredPackages(src, names, Object.keys(manifest.peerDependencies))).toEqual([])
  })

  it("pins every package to one version", () => {
    const ranges = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies })
    expect(ranges.filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version))).toEqual([])
  })
})

describe("every file", () => {
  it("starts with a comment that says what it is", () => {
    expect(heads([...src, ...others])).toEqual([])
  })

  it("does without any, silenced type errors and unexplained double assertions", () => {
    expect(typeEscapes(src)).toEqual([])
    // The rules themselves spell out what they look for; the linter refuses `any` there too.
    const checked = others.filter(({ file }) => !file.startsWith("test/architecture/"))
    expect(typeEscapes(checked).filter((fault) => !fault.includes(" as "))).toEqual([])
  })

  it("is short, or says why it is long", () => {
    expect(lengths(src)).toEqual([])
  })

  it("exports nothing that nobody imports", () => {
    expect(unusedExports(src, others, (file) => entries.includes(file))).toEqual([])
  })
})

describe("the repository", () => {
  const texts = [
    ...["src", "test", "bench", "examples", "stress", "docs", "scripts", "bin", ".ci"].flatMap((folder) =>
      filesBelow(folder, [".ts", ".mjs", ".js", ".md", ".json", "/run", "/super-pi"]),
    ),
    "README.md",
  ].filter((file) => !file.startsWith("test/architecture/"))

  const read = (file: string): string => {
    try {
      return readFileSync(path.join(root, file), "utf8")
    } catch {
      return ""
    }
  }

  it("speaks of the project only, not of the place where it was written", () => {
    const place = /(?<![\w.])\/work\/(?!space)|\.\.\/shared\b|\/tmp\/brief|\bissues? #?\d|\bfake-llm\b/i
    const faults = texts.flatMap((file) => {
      const found = place.exec(read(file))
      return found === null ? [] : [`${file}: mentions "${found[0]}"`]
    })
    expect(faults).toEqual([])
  })

  it("links only to files that exist", () => {
    const faults = texts
      .filter((file) => file.endsWith(".md"))
      .flatMap((file) =>
        [...read(file).matchAll(/\]\((?!https?:|#|mailto:)([^)#\s]+)(?:#[^)]*)?\)/g)]
          .map(([, target = ""]) => path.posix.join(path.posix.dirname(file), target))
          .filter((target) => read(target) === "" && filesBelow(target, [""]).length === 0)
          .map((target) => `${file}: links to ${target}, which is not there`),
      )
    expect(faults).toEqual([])
  })
})
