/**
 * The thin shell of a terminal: final lines scroll up, below them a few live lines are drawn over in place, and below those stands the
 * line editor where there is one.
 *
 * Owns: the rows between the final output and the editor. Nobody else writes to the stream while a screen is open. What one update writes
 * goes out at once, so that nothing half drawn is seen.
 */
import { clearScreenDown, cursorTo, type Interface, moveCursor } from "node:readline"
import type { TerminalTraits } from "./style.ts"
import { displayWidth } from "./width.ts"

export interface Screen {
  readonly traits: TerminalTraits
  /** Columns, 80 where unknown; null when the output is append-only. */
  readonly columns: () => number | null
  /** Writes final output (whole lines when the cursor moves) and redraws the live lines; those that do not fit are left out at the top. */
  readonly update: (out: string, live: ReadonlyArray<string>) => void
  /** A line was entered in the editor and took `rows` rows: what is drawn and the entered line make way for `echo`. */
  readonly entered: (echo: string, rows: number) => void
  /** The terminal has another size: what was drawn may take other rows now. */
  readonly resized: () => void
  /** The line editor that stands below, or null. */
  readonly attach: (editor: Interface | null) => void
}

/**
 * The size now: after a change, the stream itself is told a moment later than the terminal was. A size of 0, as where nobody set one, is
 * none.
 */
const sizeOf = (stream: NodeJS.WriteStream): { readonly columns: number; readonly rows: number } => {
  // A stream that is no terminal has no such method, whatever its type says.
  const asked: unknown = Reflect.get(stream, "getWindowSize")
  const [columns, rows] = asked === undefined ? [stream.columns, stream.rows] : stream.getWindowSize()
  return { columns: columns || 80, rows: rows || 24 }
}

/** Rows that stay free of live lines: the editor's, and one of the output. */
const freeRows = 2
const fewestLive = 2

const colours = new RegExp(`${String.fromCharCode(27)}\\[[0-9;]*m`, "g")
const widthOf = (line: string): number => displayWidth(line.replace(colours, ""))

/** By how many rows the editor moves up before it draws itself: it remembers where its cursor was. */
const remembered = (editor: Interface): number => {
  const rows: unknown = Reflect.get(editor, "prevRows")
  return typeof rows === "number" ? rows : editor.getCursorPos().rows
}

export const makeScreen = (stream: NodeJS.WriteStream, traits: TerminalTraits): Screen => {
  let painted = 0
  let lines: ReadonlyArray<string> = []
  let shown: string | null = ""
  let editor: Interface | null = null
  let { columns } = sizeOf(stream)
  const resized = () => {
    // Terminals break lines that do not fit any more, and join those that do again.
    columns = sizeOf(stream).columns
    painted = lines.reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(line) / columns)), 0)
    shown = null
  }
  const clearAbove = (rows: number) => {
    const up = rows + painted
    if (up > 0) moveCursor(stream, 0, -up)
    cursorTo(stream, 0)
    clearScreenDown(stream)
  }
  return {
    traits,
    columns: () => (traits.cursor ? sizeOf(stream).columns : null),
    attach: (next) => {
      editor = next
    },
    resized,
    entered: (echo, rows) => {
      if (!traits.cursor) return
      if (sizeOf(stream).columns !== columns) resized()
      stream.cork()
      clearAbove(rows)
      stream.write(echo)
      stream.uncork()
      painted = 0
      lines = []
      shown = ""
    },
    update: (out, live) => {
      if (!traits.cursor) {
        if (out !== "") stream.write(out)
        return
      }
      const rows = editor === null ? 0 : editor.getCursorPos().rows
      const size = sizeOf(stream)
      if (size.columns !== columns) resized()
      const room = Math.max(fewestLive, size.rows - rows - freeRows)
      const fitting = live.slice(-room)
      const drawn = fitting.map((one) => `${one}\n`).join("")
      if (out === "" && drawn === shown) return
      stream.cork()
      clearAbove(rows)
      // The editor moves up before it draws, so the rows are put back first.
      stream.write(`${out}${drawn}${"\n".repeat(editor === null ? 0 : remembered(editor))}`)
      painted = fitting.length
      lines = fitting
      shown = drawn
      editor?.prompt(true)
      stream.uncork()
    },
  }
}
