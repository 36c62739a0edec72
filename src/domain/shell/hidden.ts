/**
 * Characters that make a command look like another one.
 */
import type { Word } from "unbash"

/** Control characters but tab and newline, and those that change the direction of text: nowhere in a command. */
const misleading = /(?![\t\n])\p{Cc}|[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\u{e0000}-\u{e007f}]/u

/** Characters that look like a space or like nothing: not outside quotes, where a person takes them for the end of a word. */
const invisible = /(?! )[\p{Zs}\p{Default_Ignorable_Code_Point}\u2800\ufff9-\ufffb]/u

const named = (text: string, found: RegExpExecArray): string =>
  `a hidden character, U+${(text.codePointAt(found.index) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`

export const hiddenIn = (text: string): string | null => {
  const found = misleading.exec(text)
  return found === null ? null : named(text, found)
}

export const hiddenInWord = ({ parts, text }: Word): string | null => {
  const bare =
    parts === undefined ? text : parts.flatMap((part) => (part.type === "Literal" ? [part.text] : [])).join("")
  const found = invisible.exec(bare)
  return found === null ? null : named(bare, found)
}
