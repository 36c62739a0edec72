/**
 * A program and its compiled code: what is taken, what is refused and replaced, and that no fault of a cache is one of the program.
 */
import { execFileSync } from "node:child_process"
import { chownSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { build } from "esbuild"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { loadFile } from "../../src/cli/load-program.ts"

type Loaded = Pick<ReturnType<typeof loadFile>, "fromCache"> & { readonly said: string }

let root: string
let directory: string
let loader: string

const place = (...names: ReadonlyArray<string>): string => join(directory, ...names)

/** A program that says what it was given. */
const program = (word: string): string => {
  const file = place("program-1.cjs")
  const text = `(function (exports, require, module, __filename, __dirname, url) {
exports.said = () => ["${word}", typeof require("node:fs").statSync, __filename, __dirname, url].join(" ")
exports.slow = () => { const much = []; for (let at = 0; at < 1000; at++) much.push(at); return much.length }
})`
  writeFileSync(file, text)
  return file
}

/** Loads it in a process of its own, calls what it exports and keeps the code. */
const load = (file: string, ...directories: ReadonlyArray<string>): Loaded => {
  const script = `
    import { loadFile } from ${JSON.stringify(loader)}
    const { exports, fromCache, keep } = loadFile(${JSON.stringify(file)}, ${JSON.stringify(directories)})
    const said = exports.said()
    exports.slow()
    keep()
    console.log(JSON.stringify({ said, fromCache }))
  `
  return JSON.parse(execFileSync(process.execPath, ["--input-type=module", "-e", script], { encoding: "utf8" }))
}

const caches = (...names: ReadonlyArray<string>): ReadonlyArray<string> =>
  readdirSync(place(...names)).filter((name) => name.includes("cache"))

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "super-pi-load-"))
  loader = join(root, "loader.mjs")
  const entry = join(import.meta.dirname, "../../src/cli/load-program.ts")
  await build({ entryPoints: [entry], outfile: loader, bundle: true, format: "esm", platform: "node" })
})

beforeEach(() => {
  directory = mkdtempSync(join(root, "one-"))
})

afterAll(() => rmSync(root, { recursive: true, force: true }))

describe("a program with its compiled code", () => {
  it("is compiled the first time, and taken from there the next; it has what a module has", () => {
    const file = program("hello")
    const first = load(file, directory)
    expect(first).toEqual({
      said: `hello function ${file} ${directory} file://${file}`,
      fromCache: false,
    })
    expect(caches()).toHaveLength(1)
    expect(load(file, directory)).toEqual({ ...first, fromCache: true })
    expect(caches()).toEqual([expect.stringMatching(/^program-1\.cjs\.[0-9a-f]+\.cache$/)])
  })

  it("runs as it is where what lies there is no compiled code, a part of it, damaged or that of another program, and replaces it", () => {
    const file = program("hello")
    load(file, directory)
    const cache = place(caches()[0] ?? "")
    const good = readFileSync(cache)
    const damaged = Buffer.from(good)
    damaged.fill(0, good.length >> 1, (good.length >> 1) + 100)
    const half = good.subarray(0, good.length >> 1)
    for (const bad of [Buffer.from(""), Buffer.from("nothing of the kind"), half, damaged]) {
      writeFileSync(cache, bad)
      expect(load(file, directory)).toMatchObject({ said: expect.stringContaining("hello"), fromCache: false })
      expect(load(file, directory).fromCache).toBe(true)
    }
    expect(load(program("a longer word"), directory)).toMatchObject({
      said: expect.stringContaining("a longer word"),
      fromCache: false,
    })
  })

  it("keeps it in the next directory where the first takes nothing, and runs where none does", () => {
    const file = program("hello")
    writeFileSync(place("taken"), "")
    expect(load(file, place("taken"), place("user", "cache")).fromCache).toBe(false)
    expect(load(file, place("taken"), place("user", "cache")).fromCache).toBe(true)
    expect(caches("user", "cache")).toHaveLength(1)
    expect(load(file, place("taken")).fromCache).toBe(false)
  })

  it.skipIf(process.getuid?.() !== 0)("is not taken from a file of another user (skipped unless run as root)", () => {
    const file = program("hello")
    mkdirSync(place("cache"))
    load(file, place("cache"))
    expect(load(file, place("cache")).fromCache).toBe(true)
    chownSync(place("cache", caches("cache")[0] ?? ""), 12_345, 12_345)
    expect(load(file, place("cache")).fromCache).toBe(false)
  })
})
