/**
 * `super-pi migrate` and `doctor` on a database file: real processes of the built program.
 */
import Database from "better-sqlite3"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { applicationId, migrations, schemaVersion } from "../../src/storage/sqlite/schema.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
})
afterAll(() => bench.remove())

/** A closed file as version 1 of the program left it. */
const versionOne = (name: string): string => {
  const path = bench.write(name, "")
  const db = new Database(path)
  db.exec(migrations[0] ?? "")
  db.pragma(`application_id = ${applicationId}`)
  db.pragma("user_version = 1")
  db.close()
  return path
}

const versionOf = (path: string): unknown => {
  const db = new Database(path, { readonly: true })
  try {
    return db.pragma("user_version", { simple: true })
  } finally {
    db.close()
  }
}

const said = async (...args: ReadonlyArray<string>) => {
  const { code, stderr, stdout } = await bench.run(args)
  return `${code}\n${stdout}${stderr}`
}

describe("super-pi migrate", () => {
  it("says of an older file what version it has, leaves it at that, and migrates it when asked to", async () => {
    const path = versionOne("older.db")
    expect(await said("migrate", "--status", "--db", path)).toBe(`0\n${path}: schema version 1 of ${schemaVersion}\n`)
    expect(versionOf(path)).toBe(1)
    expect(await said("migrate", "--db", path)).toBe(
      `0\n${path}: schema version ${schemaVersion} of ${schemaVersion}, was 1\n`,
    )
    expect(versionOf(path)).toBe(schemaVersion)
    expect(await said("migrate", "--db", path)).toBe(
      `0\n${path}: schema version ${schemaVersion} of ${schemaVersion}\n`,
    )
  })

  it("is not what a check does: the doctor finds the file whole and leaves it as it is", async () => {
    const path = versionOne("checked.db")
    expect(await said("doctor", "--db", path)).toMatch(/database +\S+checked\.db, version 1, .* whole/)
    expect(versionOf(path)).toBe(1)
  })
})
