/**
 * The screen of a terminal, seen through a small terminal.
 */
import { Writable } from "node:stream"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { makeScreen } from "../../src/protocols/terminal/screen.ts"

/** A terminal that understands what a screen writes: text, newlines, cursor up, column, clear down. Everything that it ever showed. */
const makeTerminal = () => {
  const lines: Array<string> = [""]
  let row = 0
  let column = 0
  const put = (char: string) => {
    const line = (lines[row] ?? "").padEnd(column)
    lines[row] = line.slice(0, column) + char + line.slice(column + 1)
    column++
  }
  const escape = String.fromCharCode(27)
  const sequence = new RegExp(`^${escape}\\[(\\d*)([A-Z])`)
  const write = (text: string) => {
    for (let at = 0; at < text.length; ) {
      const found = sequence.exec(text.slice(at))
      if (found !== null) {
        const n = Number(found[1] === "" ? "1" : found[1])
        if (found[2] === "A") row = Math.max(0, row - n)
        else if (found[2] === "G") column = n - 1
        else if (found[2] === "J") {
          lines.length = row + 1
          lines[row] = (lines[row] ?? "").slice(0, column)
        } else throw new Error(`unexpected sequence ${JSON.stringify(found[0])}`)
        at += found[0].length
        continue
      }
      const char = text[at] ?? ""
      if (char === "\n") {
        row++
        column = 0
        lines[row] ??= ""
      } else put(char)
      at++
    }
  }
  const stream = new Writable({
    decodeStrings: false,
    write(chunk: string, _encoding, done) {
      write(chunk)
      done()
    },
  })
  return { stream: Object.assign(stream, { columns: 80 }), shown: () => lines.join("\n") }
}

const words = fc.stringMatching(/^[a-z ]{0,20}$/)

describe("the screen", () => {
  it("shows all final output in order with only the newest live lines below", () => {
    const updates = fc.array(
      fc.record({ out: fc.array(words, { maxLength: 3 }), live: fc.array(words, { maxLength: 3 }) }),
    )
    fc.assert(
      fc.property(updates, (steps) => {
        const { stream, shown } = makeTerminal()
        // Only what a screen uses of a terminal's stream.
        const screen = makeScreen(stream as unknown as NodeJS.WriteStream, { color: false, cursor: true })
        let final = ""
        let live: ReadonlyArray<string> = []
        for (const step of steps) {
          const out = step.out.map((line) => `${line}\n`).join("")
          screen.update(out, step.live)
          final += out
          live = step.live
        }
        expect(shown()).toBe(`${final}${live.map((line) => `${line}\n`).join("")}`)
      }),
    )
  })

  it("writes final output only where the cursor cannot be moved", () => {
    const { stream, shown } = makeTerminal()
    const screen = makeScreen(stream as unknown as NodeJS.WriteStream, { color: false, cursor: false })
    screen.update("", ["spinner"])
    screen.update("answer\n", ["spinner"])
    screen.entered("typed\n", 1)
    expect(shown()).toBe("answer\n")
    expect(screen.columns()).toBeNull()
  })

  it("puts the echo of an entered line in the place of the editor's rows", () => {
    const { stream, shown } = makeTerminal()
    const screen = makeScreen(stream as unknown as NodeJS.WriteStream, { color: false, cursor: true })
    screen.update("answer\n", ["partial", "status"])
    // What readline leaves when a line of two rows is entered.
    stream.write("> a long li\nne\n")
    screen.entered("> a long line\n", 2)
    screen.update("", ["status"])
    expect(shown()).toBe("answer\n> a long line\nstatus\n")
  })
})
