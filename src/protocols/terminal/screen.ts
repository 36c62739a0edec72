/**
 * The thin shell of a terminal: final lines scroll up, below them a few live lines are drawn over in place, and below those stands the
 * line editor where there is one.
 *
 * Owns: the rows between the final output and the editor. Nobody else writes to the stream while a screen is open.
 */
import { clearScreenDown, cursorTo, type Interface, moveCursor } from "node:readline"
import type { TerminalTraits } from "./style.ts"

export interface Screen {
  readonly traits: TerminalTraits
  /** Columns, 80 where unknown; null when the output is append-only. */
  readonly columns: () => number | null
  /** Writes final output (whole lines when the cursor moves) and redraws the live lines. */
  readonly update: (out: string, live: ReadonlyArray<string>) => void
  /** A line was entered in the editor and took `rows` rows: what is drawn and the entered line make way for `echo`. */
  readonly entered: (echo: string, rows: number) => void
  /** The line editor that stands below, or null. */
  readonly attach: (editor: Interface | null) => void
}

export const makeScreen = (stream: NodeJS.WriteStream, traits: TerminalTraits): Screen => {
  let painted = 0
  let shown = ""
  let editor: Interface | null = null
  return {
    traits,
    columns: () => (traits.cursor ? (stream.columns ?? 80) : null),
    attach: (next) => {
      editor = next
    },
    entered: (echo, rows) => {
      if (!traits.cursor) return
      moveCursor(stream, 0, -(rows + painted))
      cursorTo(stream, 0)
      clearScreenDown(stream)
      stream.write(echo)
      painted = 0
      shown = ""
    },
    update: (out, live) => {
      if (!traits.cursor) {
        if (out !== "") stream.write(out)
        return
      }
      const drawn = live.map((one) => `${one}\n`).join("")
      if (out === "" && drawn === shown) return
      const rows = editor === null ? 0 : editor.getCursorPos().rows
      const up = rows + painted
      if (up > 0) moveCursor(stream, 0, -up)
      cursorTo(stream, 0)
      clearScreenDown(stream)
      // The editor moves up by the rows of its cursor before it draws, so they are put back first.
      stream.write(`${out}${drawn}${"\n".repeat(rows)}`)
      painted = live.length
      shown = drawn
      editor?.prompt(true)
    },
  }
}
