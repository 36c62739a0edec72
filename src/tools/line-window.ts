/**
 * Some lines of a text that arrives in pieces, without holding the rest of it: long lines are cut, and only their length is counted.
 * Pure.
 */

export interface WindowLimits {
  /** Number of the first line, from 1. */
  readonly offset: number
  /** Lines at most. */
  readonly limit: number
  /** Characters of a line that are kept. */
  readonly lineChars: number
  /** Characters at most in all; the line that would pass it is left out, but the first is always there. */
  readonly totalChars: number
}

export interface WindowLine {
  readonly text: string
  /** Characters of the line that are left out. */
  readonly cut: number
}

export class LineWindow {
  readonly lines: Array<WindowLine> = []
  /** Lines that have ended or begun so far. */
  count = 0
  /** Whether any line ended with `\r\n`. */
  crlf = false
  /** Whether the text so far ends with a line end. */
  endsWithNewline = true
  readonly #limits: WindowLimits
  #chars = 0
  #full = false
  #current = ""
  #length = 0
  #last = ""

  constructor(limits: WindowLimits) {
    this.#limits = limits
  }

  /** Whether the window is complete: more text only changes {@link count}. */
  get full(): boolean {
    return this.#full
  }

  feed(text: string): void {
    let from = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      this.#append(text, from, end)
      this.#close()
      from = end + 1
    }
    if (from < text.length) this.#append(text, from, text.length)
  }

  /** The text is over. */
  end(): void {
    if (!this.endsWithNewline) {
      this.#close()
      this.endsWithNewline = false
    }
  }

  #append(text: string, from: number, to: number): void {
    if (to <= from) return
    this.endsWithNewline = false
    this.#last = text.charAt(to - 1)
    this.#length += to - from
    const room = this.#limits.lineChars + 1 - this.#current.length
    if (room > 0 && this.#wanted()) this.#current += text.slice(from, Math.min(to, from + room))
  }

  #wanted(): boolean {
    return !this.#full && this.count + 1 >= this.#limits.offset
  }

  #close(): void {
    const carriage = this.#last === "\r"
    if (carriage) this.crlf = true
    if (this.#wanted()) {
      const length = this.#length - (carriage ? 1 : 0)
      const text = cutWell(this.#current.slice(0, length), this.#limits.lineChars)
      if (this.lines.length > 0 && this.#chars + text.length > this.#limits.totalChars) this.#full = true
      else {
        this.lines.push({ text, cut: length - text.length })
        this.#chars += text.length + 1
        if (this.lines.length >= this.#limits.limit) this.#full = true
      }
    }
    this.count++
    this.#current = ""
    this.#length = 0
    this.#last = ""
    this.endsWithNewline = true
  }
}

/** At most `chars` characters, never half of a surrogate pair. */
export const cutWell = (text: string, chars: number): string => {
  if (text.length <= chars) return text
  const last = text.charCodeAt(chars - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? chars - 1 : chars)
}
