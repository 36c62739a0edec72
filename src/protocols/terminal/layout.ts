/**
 * From blocks to characters. Two kinds of output: append-only (a pipe, a dumb terminal), where text goes out as it comes; and a screen of
 * a known width, where whole lines are final and the unfinished one is drawn over until it is whole. Text is laid out as Markdown only on
 * a screen that asks for it. Pure.
 */
import { cutLine, endMarkdown, type Markdown, noMarkdown, openRows, takeLine } from "./markdown/markdown.ts"
import type { Block } from "./renderer.ts"
import { paintRow, type Row } from "./spans.ts"
import { painter, type Tone } from "./style.ts"
import { displayWidth, fitting, truncate } from "./width.ts"

export interface LayoutOptions {
  readonly color: boolean
  /** Columns of the screen; null for append-only output. */
  readonly columns: number | null
  /** Whether text is Markdown; counts on a screen only. */
  readonly markdown?: boolean
}

export interface Layout {
  /** The unfinished line of running text, unpainted. On append-only output it is already written. */
  readonly partial: string
  readonly tone: Tone
  readonly markdown: Markdown
}

export const emptyLayout: Layout = { partial: "", tone: "plain", markdown: noMarkdown }

const narrowest = 20
/** Rows of the line that grows: a longer one is made final in parts. */
const growingRows = 6
/** Characters that are looked at together: a long line is made final in parts while it is read. */
const chunk = 1000

const widthOf = (columns: number): number => Math.max(narrowest, columns)

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

/** The lines that are drawn over: what is not final yet. Nothing where output is append-only. */
export const liveLines = ({ markdown, partial, tone }: Layout, options: LayoutOptions): ReadonlyArray<string> => {
  if (options.columns === null) return []
  const paint = painter(options.color)
  if (options.markdown === true && tone === "plain") {
    return openRows(markdown, partial, widthOf(options.columns) - 1).map((row) => paintRow(row, paint))
  }
  return wrapped(partial, widthOf(options.columns)).map((line) => paint(tone, line))
}

const diffTone = (line: string): Tone => {
  if (line.startsWith("+")) return "good"
  if (line.startsWith("-")) return "error"
  return line.startsWith("@@") ? "accent" : "dim"
}

/** Lays out `blocks` behind what was laid out before. */
export const lay = (before: Layout, blocks: ReadonlyArray<Block>, options: LayoutOptions): LaidOut => {
  const paint = painter(options.color)
  const columns = options.columns === null ? null : widthOf(options.columns)
  let { markdown, partial, tone } = before
  let out = ""
  const put = (rows: ReadonlyArray<Row>) => {
    for (const row of rows) out += `${paintRow(row, paint)}\n`
  }
  const marked = (running: Tone) => columns !== null && options.markdown === true && running === "plain"
  const end = () => {
    if (columns !== null && marked(tone)) put(endMarkdown(markdown, partial, columns - 1))
    else if (partial !== "") out += columns === null ? "\n" : `${paint(tone, partial)}\n`
    partial = ""
    markdown = noMarkdown
  }
  const runMarkdown = (text: string, width: number) => {
    const pieces = text.replaceAll("\t", "    ").split("\n")
    const shorten = () => {
      const cut = cutLine(markdown, partial, width, growingRows)
      put(cut.rows)
      markdown = cut.markdown
      partial = cut.partial
    }
    for (const [index, piece] of pieces.entries()) {
      for (let at = 0; at < piece.length; at += chunk) {
        partial += piece.slice(at, at + chunk)
        shorten()
      }
      if (index < pieces.length - 1) {
        const taken = takeLine(markdown, partial, width)
        put(taken.rows)
        markdown = taken.markdown
        partial = ""
      }
    }
  }
  const runPlain = (text: string, width: number) => {
    const pieces = text.replaceAll("\t", "    ").split("\n")
    pieces.forEach((piece, index) => {
      const { lines, rest } = wrap(partial + piece, width)
      for (const one of lines) out += `${paint(tone, one)}\n`
      partial = rest
      if (index < pieces.length - 1) {
        out += `${paint(tone, partial)}\n`
        partial = ""
      }
    })
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
      case "detail":
        end()
        for (const one of block.lines) {
          const line = `  ${columns === null ? one : truncate(one.replaceAll("\t", "    "), columns - 3)}`
          out += `${paint(block.diff ? diffTone(one) : "dim", line)}\n`
        }
        break
      default: {
        tone = block.kind === "thinking" ? "dim" : "plain"
        if (columns === null) {
          out += block.text
          partial = (block.text.includes("\n") ? "" : partial) + (block.text.split("\n").pop() ?? "")
        } else if (marked(tone)) runMarkdown(block.text, columns - 1)
        else runPlain(block.text, columns)
      }
    }
  }
  return { layout: { partial, tone, markdown }, out }
}
