/**
 * Names like a mistyped one.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { byLikeness, nearest, nearestNames } from "../../src/domain/nearest.ts"

describe("the nearest name", () => {
  it("is the one with the fewest edits, a swap of neighbours being one", () => {
    expect(nearest("sumbit", ["sum", "summary", "submit"])).toBe("submit")
    expect(nearest("mdoel", ["mode", "model"])).toBe("model")
    expect(nearest("x", ["abc", "xy"])).toBe("xy")
  })

  it("does not count case, hyphens, underscores and blanks", () => {
    expect(nearest("Ignore_Case", ["ignored", "ignoreCase"])).toBe("ignoreCase")
    expect(nearest("outputformat", ["output-file", "output-format"])).toBe("output-format")
  })

  it("is rather one that begins with the wanted name or contains it than one with an edit", () => {
    expect(nearest("con", ["cat", "continue"])).toBe("continue")
    expect(nearest("sonnet", ["sonata", "claude-sonnet-4-5"])).toBe("claude-sonnet-4-5")
    expect(nearest("gpt-5-mini-x", ["gpt-5", "gpt-5-mini"])).toBe("gpt-5-mini")
    expect(nearest("file_path", ["files", "path"])).toBe("path")
  })

  it("is null without names, and the only one where there is one", () => {
    expect(nearest("x", [])).toBeNull()
    expect(nearest("x", ["something else"])).toBe("something else")
  })
})

describe("names by likeness", () => {
  it("are all there, and as near as the nearest of their forms", () => {
    const models = ["openai/gpt-5", "anthropic/claude-sonnet-4-5", "google/gemini-3"]
    const forms = (name: string) => [name, name.slice(name.indexOf("/") + 1)]
    expect(byLikeness("cluade-sonet-4-5", models, forms)[0]).toBe("anthropic/claude-sonnet-4-5")
    expect(byLikeness("gemni-3", models, forms)[0]).toBe("google/gemini-3")
    expect([...byLikeness("zzz", models, forms)].sort()).toEqual([...models].sort())
  })

  it("keep their order where they are equally near", () => {
    expect(byLikeness("ab", ["ax", "ay", "az"])).toEqual(["ax", "ay", "az"])
  })

  it("begin with the wanted name itself where it is among them, for any names", () => {
    fc.assert(
      fc.property(
        fc.array(fc.stringMatching(/^[a-z]{1,70}$/), { minLength: 1, maxLength: 8 }),
        fc.nat(),
        (names, n) => {
          const wanted = names[n % names.length] ?? ""
          const found = byLikeness(wanted, names)
          expect([...found].sort()).toEqual([...names].sort())
          expect(found[0]?.slice(0, 64)).toBe(wanted.slice(0, 64))
        },
      ),
    )
  })
})

describe("names that resemble a wrong one", () => {
  it("come nearest first and are few", () => {
    expect(nearestNames("indx.ts", ["zzz", "index.tsx", "index.ts"], 3)).toEqual(["index.ts", "index.tsx"])
    expect(nearestNames("ignore_case", ["ignoreCase", "glob"], 1)).toEqual(["ignoreCase"])
    expect(nearestNames("config", ["vite.config.ts", "readme"], 3)).toEqual(["vite.config.ts"])
  })

  it("are none where nothing resembles it", () => {
    expect(nearestNames("qqqq", ["abc", "def"], 3)).toEqual([])
    expect(nearestNames("x".repeat(100_000), ["session.open"], 1)).toEqual([])
  })
})
