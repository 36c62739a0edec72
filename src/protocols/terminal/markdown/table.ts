/**
 * Markdown tables: rows of cells, and how they are drawn within a width. Pure.
 */
import { ornament, type Row, rowWidth, wrapRow } from "../spans.ts"
import { inlineSpans } from "./inline.ts"

type Align = "left" | "center" | "right"

export interface Table {
  readonly aligns: ReadonlyArray<Align>
  readonly rows: ReadonlyArray<ReadonlyArray<string>>
  /** Whether the newest of its rows are behind ones that are drawn already. */
  readonly continued: boolean
}

const narrowestCell = 3

/** The cells of a line; a `\|` and one in code are text. */
export const cellsOf = (line: string): ReadonlyArray<string> => {
  const cells: Array<string> = []
  let cell = ""
  let code = false
  for (let at = 0; at < line.length; at++) {
    const char = line[at] ?? ""
    if (char === "\\" && line[at + 1] === "|") {
      cell += "|"
      at++
    } else if (char === "|" && !code) {
      cells.push(cell)
      cell = ""
    } else {
      if (char === "`") code = !code
      cell += char
    }
  }
  cells.push(cell)
  if (cells[0]?.trim() === "") cells.shift()
  if (cells.length > 0 && cells.at(-1)?.trim() === "") cells.pop()
  return cells.map((one) => one.trim())
}

/** The alignments that a delimiter row gives, or null where the line is none. */
export const alignsOf = (line: string): ReadonlyArray<Align> | null => {
  if (!line.includes("-") || !/^[\s|:-]+$/.test(line)) return null
  const cells = cellsOf(line)
  if (cells.length === 0 || !cells.every((cell) => /^:?-+:?$/.test(cell))) return null
  return cells.map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : "left"))
}

/** Widths of the columns that fit into `room`: the widest give way first. */
const narrowed = (wanted: ReadonlyArray<number>, room: number): ReadonlyArray<number> => {
  const widths = [...wanted]
  let over = widths.reduce((sum, width) => sum + width, 0) - room
  while (over > 0) {
    const widest = Math.max(...widths)
    if (widest <= narrowestCell) break
    const second = Math.max(narrowestCell, ...widths.filter((width) => width < widest))
    const ties = widths.filter((width) => width === widest).length
    const step = Math.max(1, Math.min(widest - second, Math.floor(over / ties)))
    for (const [index, width] of widths.entries()) {
      if (width !== widest || over <= 0) continue
      widths[index] = width - step
      over -= step
    }
  }
  return widths
}

const pad = (row: Row, width: number, align: Align): Row => {
  const free = Math.max(0, width - rowWidth(row))
  const left = align === "right" ? free : align === "center" ? Math.floor(free / 2) : 0
  return [ornament(" ".repeat(left)), ...row, ornament(" ".repeat(free - left))]
}

/** The rows of a table within `columns`; cells that are too long go over several rows. */
export const tableRows = ({ aligns, continued, rows }: Table, columns: number): ReadonlyArray<Row> => {
  const count = aligns.length
  const cells = rows.map((row, index) =>
    aligns.map((_, at) => inlineSpans(row[at] ?? "", 0, index === 0 && !continued ? ["strong"] : [], true).spans),
  )
  const wanted = aligns.map((_, at) => Math.max(narrowestCell, ...cells.map((row) => rowWidth(row[at] ?? []))))
  const widths = narrowed(wanted, Math.max(count * narrowestCell, columns - 3 * (count - 1)))
  const out: Array<Row> = []
  const rule: Row = [ornament(widths.map((width) => "─".repeat(width)).join("─┼─"), "dim")]
  for (const [index, row] of cells.entries()) {
    const wrapped = row.map((cell, at) =>
      wrapRow(cell, { columns: widths[at] ?? narrowestCell, first: [], hang: [], words: true }),
    )
    const height = Math.max(1, ...wrapped.map((lines) => lines.length))
    for (let line = 0; line < height; line++) {
      out.push(
        wrapped.flatMap((lines, at) => [
          ...(at === 0 ? [] : [ornament(" │ ", "dim")]),
          ...pad(lines[line]?.row ?? [], widths[at] ?? narrowestCell, aligns[at] ?? "left"),
        ]),
      )
    }
    if (index === 0 && !continued) out.push(rule)
  }
  return out
}
