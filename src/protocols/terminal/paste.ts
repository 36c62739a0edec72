/**
 * Bracketed paste: what a terminal marks as pasted is one input, its line breaks included. Pure.
 *
 * While a paste is open its line breaks become {@link pastedBreak}, so that a line editor keeps them; {@link restorePaste} turns them back.
 */

export const pasteOn = "\u001b[?2004h"
export const pasteOff = "\u001b[?2004l"

/** Stands for a pasted line break in the line editor. */
export const pastedBreak = "␤"

const open = "\u001b[200~"
const close = "\u001b[201~"

export interface Paste {
  readonly pasting: boolean
  /** The start of a marker that may still be completed. */
  readonly pending: string
}

export const noPaste: Paste = { pasting: false, pending: "" }

/** How many characters at the end of `text`, at least `least`, could be the start of `marker`. */
const overlap = (text: string, marker: string, least: number): number => {
  for (let n = Math.min(marker.length - 1, text.length); n >= least; n--)
    if (text.endsWith(marker.slice(0, n))) return n
  return 0
}

/** Passes `chunk` through. Outside a paste a lone escape is passed at once: it may be the Escape key. */
export const filterPaste = (before: Paste, chunk: string): { readonly paste: Paste; readonly out: string } => {
  let rest = before.pending + chunk
  let pasting = before.pasting
  let out = ""
  for (;;) {
    const marker = pasting ? close : open
    const at = rest.indexOf(marker)
    const piece = at < 0 ? rest.slice(0, rest.length - overlap(rest, marker, pasting ? 1 : 2)) : rest.slice(0, at)
    out += pasting ? piece.replace(/\r\n|\r|\n/g, pastedBreak) : piece
    if (at < 0) return { paste: { pasting, pending: rest.slice(piece.length) }, out }
    rest = rest.slice(at + marker.length)
    pasting = !pasting
  }
}

export const restorePaste = (line: string): string => line.replaceAll(pastedBreak, "\n")
