/**
 * Tool arguments while they stream and at their end.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parseArguments, parsePartialJson, unreadableArguments } from "../../src/domain/partial-json.ts"

describe("arguments that are still streaming", () => {
  it("show what is there so far", () => {
    expect(parsePartialJson('{"path": "a.t')).toEqual({ path: "a.t" })
    expect(parsePartialJson('{"path": "a", "lines": [1, 2')).toMatchObject({ path: "a" })
    expect(parsePartialJson("")).toBeNull()
    expect(parsePartialJson("garbage")).toBeNull()
  })

  it("never reach a prototype", () => {
    const value = parsePartialJson('{"a": {"__proto__": {"polluted": true}, "b": "c')
    expect(value).toEqual({ a: { b: "c" } })
    expect(Object.getPrototypeOf((value as { a: object }).a)).toBe(Object.prototype)
  })

  it("read any prefix of any JSON without throwing, and the whole of it exactly", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.nat(), (value, cut) => {
        const json = JSON.stringify(value)
        parsePartialJson(json.slice(0, cut % (json.length + 1)))
        expect(JSON.stringify(parsePartialJson(json))).toBe(json)
      }),
    )
  })
})

describe("finished arguments", () => {
  it("are the object, also when it was encoded twice, and empty for no text", () => {
    expect(parseArguments('{"a":1}')).toEqual({ a: 1 })
    expect(parseArguments(JSON.stringify('{"a":1}'))).toEqual({ a: 1 })
    expect(parseArguments("  ")).toEqual({})
  })

  it("are kept as text where they are no JSON object, so that nothing is guessed", () => {
    for (const text of ['{"a":', "[1]", "1", "null", "no", '"text"']) {
      expect(unreadableArguments(parseArguments(text))).toBe(text)
    }
    expect(unreadableArguments({ a: 1 })).toBeNull()
  })
})
