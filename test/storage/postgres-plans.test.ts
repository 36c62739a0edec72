/**
 * Every read of the PostgreSQL engine can be answered from an index: the plans say so, however few rows there are.
 */
import { Effect, Exit, Scope } from "effect"
import * as fc from "fast-check"
import type pg from "pg"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { clusterStatements } from "../../src/storage/postgres/cluster-reads.ts"
import { readStatements } from "../../src/storage/postgres/reads.ts"
import { decodeText, decodeTexts, encodeText } from "../../src/storage/postgres/text.ts"
import { describePostgres } from "../support/postgres.ts"
import { migratedDatabase, observer } from "./postgres-support.ts"

/** Tables of a few rows, and what a plan may read whole anyway. */
const small = /Seq Scan on (nodes|adoptions)\b/

describePostgres("the plan of", () => {
  const scope = Effect.runSync(Scope.make())
  let rows: pg.Client

  beforeAll(async () => {
    rows = await Effect.runPromise(Scope.extend(Effect.flatMap(migratedDatabase, observer), scope))
    await rows.query("SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan")
  }, 60_000)
  afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

  for (const [name, statement] of Object.entries({ ...readStatements, ...clusterStatements })) {
    it(`${name} needs no scan of a whole table`, async () => {
      await rows.query(`PREPARE ${name} AS ${statement}`)
      const parameters = new Set(statement.match(/\$\d+/g)).size
      const given = parameters === 0 ? "" : `(${Array.from({ length: parameters }, () => "NULL").join(", ")})`
      const { rows: lines } = await rows.query<{ "QUERY PLAN": string }>(`EXPLAIN EXECUTE ${name}${given}`)
      const scans = lines.map((line) => line["QUERY PLAN"]).filter((line) => /Seq Scan/.test(line) && !small.test(line))
      expect(scans).toEqual([])
    })
  }
})

describe("text for PostgreSQL", () => {
  const text = fc
    .array(fc.oneof(fc.constantFrom("\u0000", "\u0001", "\u0002", "é", "🦊"), fc.string()))
    .map((parts) => parts.join(""))

  it("comes back as it was and holds no U+0000", () =>
    fc.assert(
      fc.property(text, (given) => {
        const stored = encodeText(given)
        expect(stored.includes("\u0000")).toBe(false)
        expect(decodeText(stored)).toBe(given)
        expect(decodeTexts({ a: stored, b: 1, c: null })).toEqual({ a: given, b: 1, c: null })
      }),
    ))

  it("keeps the order of its bytes", () =>
    fc.assert(
      fc.property(text, text, (one, two) => {
        const order = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))
        expect(order(encodeText(one), encodeText(two))).toBe(order(one, two))
      }),
    ))

  it("has a replacement character for what is no Unicode", () => {
    expect(encodeText("a\ud800b\udc00🦊")).toBe("a\ufffdb\ufffd🦊")
  })
})
