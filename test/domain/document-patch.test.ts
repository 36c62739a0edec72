/**
 * Deltas of documents: what they say, and that applying them gives what was stored.
 */
import { describe, expect, it } from "@effect/vitest"
import { Either, Schema } from "effect"
import fc from "fast-check"
import { applyOperations, diff, PatchOperation, sameJson } from "../../src/domain/document-patch.ts"
import type { Json } from "../../src/domain/json.ts"

const copy = (value: Json): Json => JSON.parse(JSON.stringify(value))

/** `before` after its diff to `after`, by way of JSON as in a store; null where there is no diff. */
const travelled = (before: Json, after: Json): Json | null => {
  const operations = diff(before, after)
  if (operations === null) return null
  const stored = Schema.decodeUnknownSync(Schema.Array(PatchOperation))(JSON.parse(JSON.stringify(operations)))
  return Either.getOrThrowWith(applyOperations(copy(before), stored), (fault) => new Error(fault))
}

/** JSON with few distinct keys and values, so that two of them share parts; guarded names and pointer characters among them. */
const key = fc.constantFrom("a", "b", "", "a/b", "~", "~1", "0", "length", "toString", "constructor", "__proto__")
const json: fc.Arbitrary<Json> = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.constantFrom<Json>(null, true, 0, 1, "x", "y"),
    fc.array(tie("value"), { maxLength: 6 }),
    fc
      .array(fc.tuple(key, tie("value")), { maxLength: 4 })
      // fromEntries makes own properties, `__proto__` included
      .map((entries): Json => Object.fromEntries(entries)),
  ),
})).value

describe("a delta", () => {
  it("says what was added, removed and replaced, with escaped names", () => {
    expect(diff({ "a/b": 1, c: { "~": 1 }, d: 1 }, { c: { "~": 2 }, d: 1, e: [] })).toEqual([
      { op: "remove", path: "/a~1b" },
      { op: "replace", path: "/c/~0", value: 2 },
      { op: "add", path: "/e", value: [] },
    ])
  })

  it("of a list names only the items that came, went or changed, wherever they are", () => {
    const list = Array.from({ length: 2_000 }, (_, id) => ({ id, done: false }))
    const changes: ReadonlyArray<[ReadonlyArray<Json>, number]> = [
      [[...list, { id: 2_000, done: false }], 1],
      [list.slice(1), 1],
      [[...list.slice(1), { id: 2_000, done: false }], 2],
      [list.filter(({ id }) => id % 100 !== 7), 20],
      [list.toSpliced(900, 0, { id: -1, done: true }), 1],
      [list.map((item) => (item.id % 500 === 3 ? { ...item, done: true } : item)), 4],
    ]
    for (const [after, count] of changes) {
      expect(diff(list, after)?.length).toBe(count)
      expect(travelled(list, copy(after))).toEqual(after)
    }
  })

  it("is not made of more than a thousand operations: the whole value is the better record", () => {
    const list = Array.from({ length: 2_000 }, (_, id) => ({ id }))
    expect(diff(list, [])).toBe(null)
    expect(diff(list, list.toReversed())).toBe(null)
    expect(diff({ list }, { list: list.slice(0, 1_500) })?.length).toBe(500)
  })

  it("is not made for another root or for a name that libraries guard", () => {
    expect(diff({ a: 1 }, [1])).toBe(null)
    expect(diff(1, 2)).toBe(null)
    expect(diff({ constructor: { a: 1 } }, { constructor: { a: 2 } })).toBe(null)
    expect(diff({ constructor: 1, a: 1 }, { constructor: 1, a: 2 })).toEqual([{ op: "replace", path: "/a", value: 2 }])
  })

  it("is empty exactly where the values are the same, whatever the order of their keys", () => {
    expect(diff({ a: 1, b: 2 }, { b: 2, a: 1 })).toEqual([])
    fc.assert(
      fc.property(json, json, (before, after) => {
        expect(diff(before, after)?.length === 0).toBe(sameJson(before, after))
      }),
      { numRuns: 1_000 },
    )
  })

  it("applied to the value before gives the value after, for any two values", () => {
    let some = 0
    fc.assert(
      fc.property(json, json, (before, after) => {
        const reached = travelled(before, after)
        if (reached === null) return
        some++
        expect(sameJson(reached, after)).toBe(true)
      }),
      { numRuns: 2_000 },
    )
    expect(some).toBeGreaterThan(200)
  })

  it("applied to a list gives the list after, for any two lists", () => {
    const list = fc.array(fc.constantFrom<Json>(0, 1, 2, { a: 1 }, { a: 2 }), { maxLength: 12 })
    fc.assert(
      fc.property(list, list, (before, after) => {
        expect(travelled(before, after)).toEqual(after)
      }),
      { numRuns: 2_000 },
    )
  })
})

describe("applying operations", () => {
  it("says which operation does not fit, and why", () => {
    const fault = (value: Json, ...operations: ReadonlyArray<PatchOperation>) =>
      Either.match(applyOperations(value, operations), { onLeft: (detail) => detail, onRight: () => null })
    expect(fault({ a: 1 }, { op: "replace", path: "/a", value: 2 }, { op: "remove", path: "/b" })).toContain(
      "operation 1 (remove /b)",
    )
    expect(fault({ a: [1] }, { op: "add", path: "/a/3", value: 2 })).toContain("operation 0 (add /a/3)")
    expect(fault({ a: 1 }, { op: "test", path: "/a", value: 2 })).toContain("operation 0 (test /a)")
    expect(fault({ a: 1 }, { op: "add", path: "/__proto__/x", value: 2 })).toContain("without __proto__")
  })

  it("may replace the root, which a foreign delta may do", () => {
    expect(applyOperations({ a: 1 }, [{ op: "replace", path: "", value: [1] }])).toEqual(Either.right([1]))
  })
})
