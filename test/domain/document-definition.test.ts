/**
 * Definitions: what contradicts itself is refused, older values are migrated, newer ones are not touched, and the checkpoint rules.
 */
import { describe, expect, it } from "@effect/vitest"
import { Either, Schema } from "effect"
import type { DocumentOptions } from "../../src/domain/document-definition.ts"
import { decodeDocument, defineDocument, encodeDocument, everySixtyFour } from "../../src/domain/document-definition.ts"
import { changeOf, noTail, replay } from "../../src/domain/document-revision.ts"
import type { Seq } from "../../src/domain/ids.ts"

const Cart = Schema.Struct({ items: Schema.Array(Schema.String) })
type Cart = typeof Cart.Type

const options: DocumentOptions<Cart, Cart> = {
  kind: "app.cart",
  version: 1,
  schema: Cart,
  scope: "conversation",
  initial: () => ({ items: [] }),
}

const define = (some: Partial<DocumentOptions<Cart, Cart>>) => defineDocument({ ...options, ...some })

describe("a definition", () => {
  it("keeps the latest value and starts forks afresh, unless it says otherwise", () => {
    const cart = define({})
    expect([cart.history, cart.fork, cart.family]).toEqual(["latest", "initial", false])
  })

  it("that contradicts itself is refused with the field, what was expected and what came", () => {
    expect(() => define({ kind: "" })).toThrow('document "".kind: expected a name, got ""')
    expect(() => define({ version: 0 })).toThrow(
      'document "app.cart".version: expected a whole number from 1 on, got 0',
    )
    expect(() => define({ version: 2 })).toThrow("migrate: expected a function, since version is 2")
    expect(() => define({ fork: "asOf" })).toThrow('history: expected "rewindable", since fork is "asOf", got "latest"')
    expect(() => define({ scope: "global", fork: "current" })).toThrow('fork: expected "initial"')
  })
})

describe("a stored value", () => {
  const dated = defineDocument({
    kind: "app.dated",
    version: 1,
    scope: "conversation",
    schema: Schema.Struct({ at: Schema.Date }),
    initial: () => ({ at: new Date(0) }),
  })

  const third = defineDocument({
    ...options,
    version: 3,
    schema: Schema.Struct({ items: Schema.Array(Schema.String), total: Schema.Int }),
    initial: () => ({ items: [], total: 0 }),
    migrate: (value, from) =>
      from === 1 ? { items: (value as { list: Array<string> }).list } : { ...(value as Cart), total: 7 },
  })

  it("of an older version goes through every migration in between", () => {
    expect(decodeDocument(third, 1, { list: ["a"] })).toEqual(Either.right({ items: ["a"], total: 7 }))
    expect(decodeDocument(third, 2, { items: ["b"] })).toEqual(Either.right({ items: ["b"], total: 7 }))
    expect(decodeDocument(third, 3, { items: [], total: 1 })).toEqual(Either.right({ items: [], total: 1 }))
  })

  it("of a newer version is refused without being looked at", () => {
    expect(decodeDocument(third, 4, "anything")).toEqual(Either.left({ type: "newer", found: 4 }))
  })

  it("that does not fit, or whose migration breaks, says where", () => {
    expect(decodeDocument(third, 3, { items: [1], total: 1 })).toEqual(
      Either.left({ type: "invalid", detail: "items.0: Expected string, actual 1" }),
    )
    const broken = Either.flip(decodeDocument(third, 1, null))
    expect(Either.getOrThrow(broken)).toMatchObject({ type: "invalid", detail: expect.stringContaining("version 1: ") })
  })

  it("keeps fields that this version does not know, through reading and writing", () => {
    const json = { items: [], total: 1, later: { x: 1 } }
    const value = Either.getOrThrow(decodeDocument(third, 3, json))
    expect(Either.getOrThrow(encodeDocument(third, value))).toEqual(json)
    const transformed = { at: "1970-01-01T00:00:00.000Z", later: { x: 1 } }
    const date = Either.getOrThrow(decodeDocument(dated, 1, transformed))
    expect(Either.getOrThrow(encodeDocument(dated, date))).toEqual(transformed)
  })

  it("of a schema that transforms is stored as its JSON", () => {
    const json = Either.getOrThrow(encodeDocument(dated, dated.initial()))
    expect(json).toEqual({ at: "1970-01-01T00:00:00.000Z" })
    expect(Either.getOrThrow(decodeDocument(dated, 1, json))).toEqual({ at: new Date(0) })
  })
})

describe("a change", () => {
  const seq = (value: number) => value as Seq
  const listOf = (count: number) => ({
    items: Array.from({ length: count }, (_, at) => ({
      id: `${at}`,
      text: "x".repeat(40),
      status: "pending" as const,
    })),
  })

  it("is stored as operations while these are shorter than the value, and whole at the 64th or when they outgrow it", () => {
    let value = listOf(200)
    let tail = noTail
    const kinds: Array<string> = []
    for (let step = 0; step < 130; step++) {
      const next = { items: value.items.map((item, at) => (at === step ? { ...item, text: `${step}` } : item)) }
      const change = changeOf(value, next, tail, everySixtyFour)
      kinds.push(change.operations === null ? "base" : "delta")
      value = next
      tail = change.tail
    }
    expect(kinds.flatMap((kind, at) => (kind === "base" ? [at + 1] : []))).toEqual([64, 128])
    const small = changeOf(listOf(1), listOf(0), noTail, everySixtyFour)
    expect(small).toEqual({ operations: null, tail: noTail })
    expect(changeOf(listOf(0), listOf(0), { deltas: 1, bytes: 9_999 }, everySixtyFour).operations).toBe(null)
  })

  it("is stored whole when the rule says so, and never as operations that are longer than the value", () => {
    const before = { items: ["x".repeat(200)] }
    const after = { items: ["x".repeat(200), "y"] }
    expect(changeOf(before, after, noTail, () => true).operations).toBe(null)
    expect(changeOf(before, after, { deltas: 999, bytes: 1 }, () => false).tail.deltas).toBe(1_000)
    expect(changeOf(after, { items: [] }, noTail, () => false).operations).toBe(null)
  })

  it("that does not fit the revision before it is reported with its commit", () => {
    const base = { type: "base", seq: seq(1), version: 1, value: { a: 1 } } as const
    const delta = { type: "delta", seq: seq(2), version: 1, operations: [{ op: "remove", path: "/b" }] } as const
    expect(Either.flip(replay([base, delta])).pipe(Either.getOrThrow)).toMatchObject({ seq: 2 })
    expect(Either.flip(replay([delta])).pipe(Either.getOrThrow)).toMatchObject({ seq: 2 })
    expect(base.value).toEqual({ a: 1 })
  })
})
