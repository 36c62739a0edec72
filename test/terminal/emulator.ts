/**
 * As much of a terminal as the chat uses: text with wrapping, cursor movement, clearing, lines that are broken anew for another width. Keeps
 * everything that it ever showed. It refuses sequences that it does not know, so that nothing is drawn by accident.
 */
import { displayWidth } from "../../src/protocols/terminal/width.ts"

const escape = String.fromCharCode(27)
const sequence = new RegExp(`^${escape}\\[(\\??[\\d;]*)([A-Za-z])`)

export interface Emulator {
  readonly write: (text: string) => void
  /** All rows from the first one on, without trailing blanks. */
  readonly text: () => string
  readonly resize: (columns: number) => void
}

export const makeEmulator = (width: number): Emulator => {
  let columns = width
  let rows: Array<Array<string>> = [[]]
  /** Rows that go on in the next one. */
  let broken = new Set<number>()
  let row = 0
  let column = 0
  let pending = ""
  const put = (char: string) => {
    const width = displayWidth(char)
    if (column + width > columns) {
      broken.add(row)
      row++
      column = 0
    }
    rows[row] ??= []
    const cells = rows[row] ?? []
    while (cells.length < column) cells.push(" ")
    cells[column] = char
    for (let at = 1; at < width; at++) cells[column + at] = ""
    column += width
  }
  const control = (argument: string, kind: string) => {
    const n = Number(argument === "" ? "1" : argument)
    switch (kind) {
      case "A":
        row = Math.max(0, row - n)
        break
      case "C":
        column += n
        break
      case "D":
        column = Math.max(0, column - n)
        break
      case "G":
        column = n - 1
        break
      case "J":
        rows.length = row + 1
        broken = new Set([...broken].filter((one) => one < row))
        rows[row] = (rows[row] ?? []).slice(0, column)
        break
      case "K":
        rows[row] = (rows[row] ?? []).slice(0, column)
        break
      case "m":
      case "h":
      case "l":
        break
      default:
        throw new Error(`unexpected sequence ${JSON.stringify(argument + kind)}`)
    }
  }
  /** Lines as they were written, broken for another width; the cursor stays where it is in its line. */
  const resize = (next: number) => {
    const [before, brokenBefore, rowBefore] = [rows, broken, row]
    rows = []
    broken = new Set()
    let line: Array<string> = []
    let cursor = -1
    for (const [at, cells] of before.entries()) {
      if (at === rowBefore) cursor = line.length + column
      line.push(...cells)
      if (brokenBefore.has(at)) continue
      const first = rows.length
      const used = Math.max(1, Math.ceil(line.length / next))
      for (let part = 0; part < used; part++) {
        if (part < used - 1) broken.add(rows.length)
        rows.push(line.slice(part * next, (part + 1) * next))
      }
      if (cursor >= 0) {
        row = first + Math.min(used - 1, Math.floor(cursor / next))
        column = cursor - (row - first) * next
        cursor = -1
      }
      line = []
    }
    columns = next
  }
  return {
    resize,
    write: (text) => {
      let rest = pending + text
      pending = ""
      while (rest !== "") {
        const found = sequence.exec(rest)
        if (found !== null) {
          control(found[1] ?? "", found[2] ?? "")
          rest = rest.slice(found[0].length)
          continue
        }
        if (rest.startsWith(escape) && rest.length < 12) {
          pending = rest
          return
        }
        const [char = ""] = rest
        if (char === "\n") {
          row++
          rows[row] ??= []
        } else if (char === "\r") column = 0
        else if (char >= " ") put(char)
        rest = rest.slice(char.length)
      }
    },
    text: () =>
      rows
        .map((cells) =>
          cells
            .map((cell) => cell ?? " ")
            .join("")
            .trimEnd(),
        )
        .join("\n"),
  }
}
