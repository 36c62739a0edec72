/**
 * Making directories where the file system does not let one.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { makeDirectories } from "../../src/storage/directories.ts"

const base = mkdtempSync(join(tmpdir(), "super-pi-directories-"))
afterAll(() => rmSync(base, { recursive: true, force: true }))

describe("making directories", () => {
  it("makes every missing parent and minds none that is there", () => {
    const deep = join(base, "a", "b", "c")
    makeDirectories(deep, 0o700)
    makeDirectories(deep, 0o700)
    expect(existsSync(deep)).toBe(true)
  })

  it.runIf(existsSync("/proc/self"))("fails below a file system that takes none, and does not hang", () => {
    expect(() => makeDirectories("/proc/no-such/place", 0o700)).toThrow(/ENOENT|EACCES|EPERM/)
  })

  it("fails where a parent is a file", () => {
    writeFileSync(join(base, "file"), "")
    expect(() => makeDirectories(join(base, "file", "x"), 0o700)).toThrow(/ENOTDIR|EEXIST/)
  })
})
