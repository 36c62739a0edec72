/**
 * Markdown on a screen: what it looks like, and that it is the same however it streams.
 */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { emptyLayout, type LayoutOptions, lay, liveLines } from "../../src/protocols/terminal/layout.ts"
import type { Block } from "../../src/protocols/terminal/renderer.ts"
import { displayWidth } from "../../src/protocols/terminal/width.ts"

const escape = String.fromCharCode(27)
const colours = new RegExp(`${escape}\\[\\d+m`, "g")
const screen = (columns: number): LayoutOptions => ({ color: true, columns, markdown: true })

/** Final output of a text that comes in `pieces` and ends. */
const streamed = (pieces: ReadonlyArray<string>, columns: number): string => {
  let layout = emptyLayout
  let out = ""
  const blocks: ReadonlyArray<Block> = [...pieces.map((text) => ({ kind: "text", text }) as const), { kind: "break" }]
  for (const block of blocks) {
    const laid = lay(layout, [block], screen(columns))
    layout = laid.layout
    out += laid.out
  }
  return out
}

const plain = (text: string, columns = 60): string => streamed([text], columns).replace(colours, "")
const words = (text: string): string => text.replace(/\s+/g, " ").trim()

describe("markdown on a screen", () => {
  it("shows headings, lists, quotes, rules and emphasis without their marks", () => {
    const source = [
      "# Title",
      "Some **bold**, *slanted*, ~~gone~~ and `code`; see [the docs](https://example.com/a_b_c).",
      "",
      "- one",
      "  - [x] done",
      "10. ten",
      "> quoted",
      "---",
    ].join("\n")
    expect(plain(source, 50)).toMatchInlineSnapshot(`
      "Title
      Some bold, slanted, gone and code; see the docs
      (https://example.com/a_b_c).

      • one
        ☑ done
      10. ten
      │ quoted
      ─────────────────────────────────────────────────
      "
    `)
  })

  it("paints what is emphasised, and ends every colour on its row", () => {
    expect(streamed(["**a b**"], 40)).toBe(`${escape}[1ma b${escape}[22m\n`)
    const long = streamed([`**${"word ".repeat(20)}end**`], 40)
    for (const row of long.trimEnd().split("\n")) expect(row).toMatch(new RegExp(`^${escape}\\[1m.*${escape}\\[22m$`))
  })

  it("leaves alone what only looks like a mark", () => {
    const source = "2 * 3 * 4, snake_case_name, **kwargs, a[0](x, \\*not this\\*, <T>, `un`closed` and 5*6*7"
    expect(words(plain(source, 120))).toBe(
      "2 * 3 * 4, snake_case_name, **kwargs, a[0](x, *not this*, <T>, unclosed` and 5*6*7",
    )
  })

  it("shows the address of a link, which the text may not hide", () => {
    expect(plain("[https://bank.example](https://evil.example)")).toBe("https://bank.example (https://evil.example)\n")
    expect(plain("<https://a.example> and [https://b.example](https://b.example)")).toBe(
      "https://a.example and https://b.example\n",
    )
  })

  it("hangs wrapped items and quotes below their text", () => {
    expect(plain("- one two three four five six", 20)).toBe("• one two three\n  four five six\n")
    expect(plain("> one two three four five", 20)).toBe("│ one two three\n│ four five\n")
  })

  it("draws a table within the width, cells over several rows where they must be", () => {
    const table = "| Name | n |\n|:---|---:|\n| apples | 3 |\n| a name that is much too long for this | 12 |\nafter"
    expect(plain(table, 32)).toMatchInlineSnapshot(`
      "Name                      │   n
      ──────────────────────────┼────
      apples                    │   3
      a name that is much too   │  12
      long for this             │    
      after
      "
    `)
    expect(plain("a | b is no table\nnor is this", 40)).toBe("a | b is no table\nnor is this\n")
  })

  it("shows code as it is, with its fences, and colours what it knows", () => {
    const source = "```ts\nconst a = 1 // *one*\n\n  /* two\n  lines */ b\n```\nafter"
    expect(plain(source)).toBe("```ts\n  const a = 1 // *one*\n  \n    /* two\n    lines */ b\n```\nafter\n")
    const painted = streamed([source], 60)
    expect(painted).toContain(`${escape}[35mconst${escape}[39m a = ${escape}[33m1${escape}[39m`)
    expect(painted).toContain(`${escape}[2m  lines */${escape}[22m b`)
    expect(plain("```\n**x**")).toBe("```\n  **x**\n")
    expect(streamed(["```diff\n+a\n-b\n```"], 40)).toContain(`${escape}[32m+a${escape}[39m`)
  })

  it("begins anew with each message, also where a fence was left open", () => {
    let layout = lay(emptyLayout, [{ kind: "text", text: "```\nopen\n" }, { kind: "break" }], screen(40)).layout
    layout = lay(layout, [{ kind: "text", text: "**a**" }], screen(40)).layout
    expect(liveLines(layout, screen(40))).toEqual([`${escape}[1ma${escape}[22m`])
  })

  const piece = fc.constantFrom(
    ..."*|`_~#>-[]()!\\ab1 .\n".split(""),
    "**",
    "```",
    "```js\n",
    "| a | b |\n",
    "|---|--:|\n",
    "[x](http://y)",
    "\n- ",
    "\n\n",
    "words of a text ",
    "日本語",
    "🙂",
    "// c",
    '"',
  )
  const document = fc.array(piece, { maxLength: 120 })

  it("is the same however the text was cut into pieces", () => {
    fc.assert(
      fc.property(document, fc.constantFrom(20, 33, 80), (parts, columns) => {
        // A line that is longer than some rows may be made final before its end is known.
        fc.pre(
          parts
            .join("")
            .split("\n")
            .every((line) => displayWidth(line) < 4 * columns),
        )
        expect(streamed(parts, columns)).toBe(streamed([parts.join("")], columns))
      }),
    )
  })

  it("keeps every row within the width, live or final, and what is live short", () => {
    fc.assert(
      fc.property(document, fc.constantFrom(20, 33, 80), (parts, columns) => {
        let layout = emptyLayout
        for (const text of parts) {
          const laid = lay(layout, [{ kind: "text", text }], screen(columns))
          layout = laid.layout
          const live = liveLines(layout, screen(columns))
          for (const row of [...laid.out.split("\n"), ...live]) {
            expect(displayWidth(row.replace(colours, ""))).toBeLessThan(columns)
          }
        }
      }),
    )
  })

  it("loses no word, wherever long lines are cut", () => {
    const word = fc.stringMatching(/^[a-z]{1,12}$/)
    const lines = fc.array(fc.array(fc.oneof(word, fc.constantFrom("**", "*", "`", "[", "_x")), { maxLength: 200 }))
    fc.assert(
      fc.property(lines, fc.constantFrom(20, 40), (all, columns) => {
        const text = all.map((line) => line.join(" ")).join("\n")
        const only = (shown: string) => (shown.replace(colours, "").match(/[a-z]{2,}/g) ?? []).join("")
        const source = (text.match(/[a-z]{2,}/g) ?? []).join("")
        expect(only(streamed(text.match(/[\s\S]{1,7}/g) ?? [], columns)).replaceAll("x", "")).toBe(
          source.replaceAll("x", ""),
        )
      }),
      { numRuns: 60 },
    )
  })

  it("stays small whatever a model streams without a line break", () => {
    const parts = ["[", "*a ", "**a", "` ``", "_*", "![a](", "|a", "> ", "http://", "\\`", "~~x ", "word "]
    for (const part of parts) {
      let layout = emptyLayout
      for (let at = 0; at < 15; at++) {
        layout = lay(layout, [{ kind: "text", text: part.repeat(1000 / part.length) }], screen(80)).layout
        expect(layout.partial.length).toBeLessThan(10_000)
      }
      expect(liveLines(layout, screen(80)).length).toBeLessThan(40)
    }
  })
})
