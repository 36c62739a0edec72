/**
 * From blocks to characters. Two kinds of output: append-only (a pipe, a dumb terminal), where text goes out as it comes; and a screen of
 * a known width, where whole lines are final and the unfinished one is drawn over until it is whole. Pure.
 */
import type { Block } from "./renderer.ts"
import { painter, type Tone } from "./style.ts"
import { displayWidth, fitting } from "./width.ts"

export interface LayoutOptions {
  readonly color: boolean
  /** Columns of the screen; null for append-only output. */
  readonly columns: number | null
}

export interface Layout {
  /** The unfinished line of running text, unpainted. On append-only output it is already written. */
  readonly partial: string
  readonly tone: Tone
}

export const emptyLayout: Layout = { partial: "", tone: "plain" }

const narrowest = 20

/** Breaks off lines that fill the width, at a space where there is one. */
const wrap = (text: string, columns: number): { readonly lines: ReadonlyArray<string>; readonly rest: string } => {
  const lines: Array<string> = []
  let rest = text
  while (displayWidth(rest) >= columns) {
    const fit = fitting(rest, columns - 1)
    const space = rest.lastIndexOf(" ", fit)
    const indent = rest.length - rest.trimStart().length
    const atSpace = space > indent
    const cut = atSpace ? space : Math.max(1, fit)
    lines.push(rest.slice(0, cut).trimEnd())
    rest = rest.slice(atSpace ? cut + 1 : cut)
  }
  return { lines, rest }
}

/** All lines of a text that is whole. */
const wrapped = (text: string, columns: number): ReadonlyArray<string> => {
  const { lines, rest } = wrap(text, columns)
  return rest === "" ? lines : [...lines, rest]
}

export interface LaidOut {
  readonly layout: Layout
  /** Final output: on a screen, whole lines only. */
  readonly out: string
}

/** Lays out `blocks` behind what was laid out before. */
export const lay = (before: Layout, blocks: ReadonlyArray<Block>, options: LayoutOptions): LaidOut => {
  const paint = painter(options.color)
  const columns = options.columns === null ? null : Math.max(narrowest, options.columns)
  let { partial, tone } = before
  let out = ""
  const end = () => {
    if (partial === "") return
    out += columns === null ? "\n" : `${paint(tone, partial)}\n`
    partial = ""
  }
  for (const block of blocks) {
    switch (block.kind) {
      case "break":
        end()
        break
      case "line":
        end()
        for (const one of columns === null ? [block.text] : wrapped(block.text, columns)) {
          out += `${paint(block.tone, one)}\n`
        }
        break
      default: {
        tone = block.kind === "thinking" ? "dim" : "plain"
        if (columns === null) {
          out += block.text
          partial = (block.text.includes("\n") ? "" : partial) + (block.text.split("\n").pop() ?? "")
          break
        }
        const pieces = block.text.replaceAll("\t", "    ").split("\n")
        pieces.forEach((piece, index) => {
          const { lines, rest } = wrap(partial + piece, columns)
          for (const one of lines) out += `${paint(tone, one)}\n`
          partial = rest
          if (index < pieces.length - 1) {
            out += `${paint(tone, partial)}\n`
            partial = ""
          }
        })
      }
    }
  }
  return { layout: { partial, tone }, out }
}
