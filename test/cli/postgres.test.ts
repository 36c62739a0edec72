/**
 * The command line on a PostgreSQL server: real processes of the built program.
 */
import { join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest"
import { describePostgres, postgresDatabase, type TestDatabase } from "../support/postgres.ts"
import { type Bench, buildProgram, makeBench } from "./program.ts"

let bench: Bench
let database: TestDatabase
let scope: Scope.CloseableScope

const hanging = { chunkMs: 1, rules: [{ match: "^hang", steps: [{ text: "I begin", hang: true }] }] }
const answering = { chunkMs: 1, rules: [{ match: ".*", steps: [{ text: "An answer." }] }] }

beforeAll(async () => {
  bench = makeBench()
  await buildProgram()
})
afterAll(() => bench.remove())

beforeEach(async () => {
  scope = await Effect.runPromise(Scope.make())
  database = await Effect.runPromise(Scope.extend(postgresDatabase, scope))
})
afterEach(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const env = (more: Record<string, string> = {}): { readonly env: Record<string, string> } => ({
  env: {
    ...database.env,
    SUPER_PI_DEFAULT_MODEL: "script/test",
    SUPER_PI_SCRIPT: join(bench.directory, "script.json"),
    ...more,
  },
})
const script = (rules: unknown): void => void bench.write("script.json", JSON.stringify(rules))

/** What a command says, on stdout and stderr, and how it ends. */
const said = async (args: ReadonlyArray<string>, more: Record<string, string> = {}) => {
  const { code, stderr, stdout } = await bench.run(args, env(more))
  return `${code}\n${stdout}${stderr}`
}

describePostgres("super-pi on a server", () => {
  it("makes the schema at the first prompt, and reads it from every command", async () => {
    script(answering)
    expect(await said(["session", "list"])).toBe("0\nno conversations yet; start one with: super-pi\n")
    expect(await said(["run", "hello"])).toBe("0\nAn answer.\n")
    expect(await said(["run", "-c", "again"])).toBe("0\nAn answer.\n")
    expect(await said(["session", "list"])).toMatch(/^0\n1 {2}just now {2}5 entries {2}hello\n$/)
    expect(await said(["session", "show", "1"])).toMatch(/> hello[\s\S]*An answer\.[\s\S]*> again/)
    expect(await said(["session", "export", "1", "--json"])).toMatch(/^0\n\{/)
    expect(await said(["effects"])).toBe("0\nno effect is in doubt\n")
    expect(await said(["tasks", "list"])).toBe("0\nno task is open\n")
    expect(await said(["questions"])).toBe("0\nno question is open\n")
    expect(await said(["queue", "list"])).toMatch(/^0\n[\s\S]*verification {2}.*1 available[\s\S]*verification\/check/)
    expect(await said(["tree"])).toMatch(/^1\n.*not attached to, that works with SQLite only/)
    expect(await said(["session", "rm", "1"])).toMatch(/^0\n/)
    expect(await said(["session", "list"])).toContain("no conversations yet")
  })

  it("belongs to one process, whose death with kill -9 loses nothing", async () => {
    script(hanging)
    const first = bench.start(["run", "hang on", "--output-format", "stream-json"], env())
    await first.until(/"type":"text_delta"/)
    expect(await said(["session", "list"])).toContain("[busy] hang on")
    const other = await said(["run", "hello"])
    expect(other).toMatch(/^1\nsuper-pi: postgresql:.* is in use by super-pi run \(process \d+/)
    expect(other).toContain("attaching works with SQLite only")
    expect(other).not.toContain(":postgres@")
    expect(await said(["doctor"])).toMatch(/owner +super-pi run \(process/)
    first.child.kill("SIGKILL")
    await first.ended
    script(answering)
    expect(await said(["run", "-c", "and then"])).toBe("0\nAn answer.\n")
    const shown = await said(["session", "show", "1"])
    expect(shown.match(/An answer\./g)).toHaveLength(2)
    expect(shown).toMatch(/> hang on[\s\S]*An answer\.[\s\S]*> and then[\s\S]*An answer\./)
  })

  it("is not migrated by a node in production, which says what to run", async () => {
    script(answering)
    const production = { NODE_ENV: "production" }
    expect(await said(["run", "hello"], production)).toMatch(
      /^1\nsuper-pi: .*: its schema has version 0, this program needs \d+\. Run `super-pi migrate`\n$/,
    )
    expect(await said(["migrate", "--status"], production)).toMatch(/^0\n.*schema version 0 of \d+\npending {2}1 {2}/)
    const both = await Promise.all([said(["migrate"], production), said(["migrate"], production)])
    expect(both.join("").match(/^up {4}1 {2}/gm)).toHaveLength(1)
    for (const one of both) expect(one).toMatch(/^0\n[\s\S]*: schema version (\d+) of \1/)
    expect(await said(["run", "hello"], production)).toBe("0\nAn answer.\n")
    expect(await said(["migrate"], production)).toMatch(/, nothing to do\n$/)
    expect(await said(["migrate", "--to", "0"], production)).toMatch(/^1\n.*--force does it/)
    expect(await said(["migrate", "--to", "0", "--force"], production)).toMatch(/^0\n[\s\S]*schema version 0 of/)
    expect(await said(["migrate", "--to", "99"], production)).toMatch(/^1\n.*This program knows versions 0 to/)
  })

  it("is migrated at the start in production where SUPER_PI_AUTO_MIGRATE says so", async () => {
    script(answering)
    const auto = { NODE_ENV: "production", SUPER_PI_AUTO_MIGRATE: "true" }
    expect(await said(["run", "hello"], auto)).toContain("An answer.\n")
  })

  it("is not what --db means: that is a file", async () => {
    script(answering)
    expect(await said(["run", "hello", "--db", "own.db"])).toBe("0\nAn answer.\n")
    expect(await said(["session", "list", "--db", "own.db"])).toContain("hello")
    expect(await said(["session", "list"])).toContain("no conversations yet")
    expect(await said(["migrate", "--db", "own.db"])).toMatch(/^0\n.*own\.db: schema version (\d+) of \1\n$/)
    expect(await said(["migrate", "--db", "own.db", "--to", "1"])).toMatch(/^1\n.*a database file goes up only/)
    expect(await said(["migrate", "--db", "new.db"])).toMatch(/^0\n.*new\.db: schema version (\d+) of \1, was 0\n$/)
  })

  it("says which variable is wrong, and never the password", async () => {
    const wrong = { DATABASE_URL: "ecto://app:geheim@localhost" }
    for (const command of [["run", "x"], ["session", "list"], ["migrate"], ["doctor"], ["queue", "list"]]) {
      const text = await said(command, wrong)
      expect(text).toContain("DATABASE_URL: expected the name of a database at the end")
      expect(text).not.toContain("geheim")
    }
    expect(await said(["run", "x"], { SUPER_PI_STORAGE_BACKEND: "mysql" })).toBe(
      '1\nsuper-pi: SUPER_PI_STORAGE_BACKEND: expected sqlite or postgres, got "mysql"\n',
    )
  })

  it("is described by doctor: server, encryption, pool, schema, owner", async () => {
    script(answering)
    await said(["run", "hello"])
    const text = await said(["doctor"])
    expect(text).toMatch(/database +postgresql:\/\/\S+, PostgreSQL \d+\S*, schema version \d+\n/)
    expect(text).toMatch(/connection +.*; pool of 10\n/)
    expect(text).toMatch(/owner +nobody works on the database at the moment\n/)
  })
})
