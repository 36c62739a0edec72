/**
 * Colours of the terminal, and when they are used.
 */

export type Tone =
  | "plain"
  | "dim"
  | "good"
  | "warning"
  | "error"
  | "accent"
  | "strong"
  | "slanted"
  | "underlined"
  | "struck"
  | "keyword"

const codes: Readonly<Record<Tone, readonly [string, string]>> = {
  plain: ["", ""],
  dim: ["\u001b[2m", "\u001b[22m"],
  good: ["\u001b[32m", "\u001b[39m"],
  warning: ["\u001b[33m", "\u001b[39m"],
  error: ["\u001b[31m", "\u001b[39m"],
  accent: ["\u001b[36m", "\u001b[39m"],
  strong: ["\u001b[1m", "\u001b[22m"],
  slanted: ["\u001b[3m", "\u001b[23m"],
  underlined: ["\u001b[4m", "\u001b[24m"],
  struck: ["\u001b[9m", "\u001b[29m"],
  keyword: ["\u001b[35m", "\u001b[39m"],
}

/** Paints text; plain where there is no colour. */
export type Paint = (tone: Tone, text: string) => string

export const painter =
  (color: boolean): Paint =>
  (tone, text) =>
    color && text !== "" ? `${codes[tone][0]}${text}${codes[tone][1]}` : text

export interface TerminalTraits {
  /** Colour escape codes may be written. */
  readonly color: boolean
  /** The cursor may be moved: a line can be drawn over. */
  readonly cursor: boolean
}

/** What may be written to a stream. Nothing but text where it is not a terminal or the terminal is `dumb`; no colour with NO_COLOR. */
export const traitsOf = (
  stream: { readonly isTTY?: boolean },
  env: Readonly<Record<string, string | undefined>>,
): TerminalTraits => {
  const cursor = stream.isTTY === true && env.TERM !== "dumb"
  const noColor = env.NO_COLOR !== undefined && env.NO_COLOR !== ""
  return { cursor, color: cursor && !noColor }
}
