/**
 * Rules as text of a prompt, within a budget of tokens. Pure: the same files give the same text.
 */
import { estimateText } from "../../../domain/token-estimate.ts"
import type { RulesFile } from "./find.ts"

/** Tokens of the tags and the note around a text. */
const aroundTokens = 24

/** Fewer tokens of a file than these are not worth showing. */
const leastTokens = 64

/** The longest beginning of whole lines within a budget. */
const beginning = (text: string, tokens: number): string => {
  const lines = text.split("\n")
  let low = 0
  let high = lines.length
  while (low < high) {
    const middle = Math.ceil((low + high) / 2)
    if (estimateText(lines.slice(0, middle).join("\n")) <= tokens) low = middle
    else high = middle - 1
  }
  return lines.slice(0, low).join("\n")
}

interface Shown {
  readonly path: string
  readonly text: string
  readonly cut: boolean
}

export interface Fitted {
  readonly shown: ReadonlyArray<Shown>
  /** Paths without room. */
  readonly left: ReadonlyArray<string>
  readonly tokens: number
}

/** Gives room to the files in their order, nearest first: what is farthest is cut first. */
export const fitInto = (files: ReadonlyArray<RulesFile>, budget: number): Fitted => {
  const shown: Array<Shown> = []
  const left: Array<string> = []
  let tokens = 0
  for (const { path, text } of files) {
    const room = budget - tokens - aroundTokens
    const wanted = estimateText(text)
    const part = wanted <= room ? text : room < leastTokens ? "" : beginning(text, room)
    if (part === "") {
      left.push(path)
      continue
    }
    tokens += aroundTokens + estimateText(part)
    shown.push({ path, text: part, cut: part !== text })
  }
  return { shown, left, tokens }
}

const attribute = (path: string): string => path.replace(/["\n<>&]/g, "_")

/** The text of a section, the farthest file first so that nearer ones have the last word; null where there are none. */
export const render = (intro: string, { left, shown }: Fitted): string | null => {
  if (shown.length === 0 && left.length === 0) return null
  const parts = shown.toReversed().map(({ cut, path, text }) => {
    const note = cut ? `\n[cut: there is no room for the rest; read ${path} where it matters]` : ""
    return `<rules_file path="${attribute(path)}">\n${text}${note}\n</rules_file>`
  })
  const missing =
    left.length === 0 ? [] : [`Left out for lack of room; read them where they matter: ${left.join(", ")}`]
  return [intro, ...parts, ...missing].join("\n\n")
}
