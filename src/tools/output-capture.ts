/**
 * What a command wrote, within a bounded memory: bytes are decoded across chunk boundaries; the start and the end of the text are kept;
 * and all of it up to a limit, until a file takes over. Pure.
 */
import { StringDecoder } from "node:string_decoder"

export interface CaptureLimits {
  /** Characters kept of the start and of the end. */
  readonly headChars: number
  readonly tailChars: number
  /** Bytes kept in memory before a file has to take over. */
  readonly memoryBytes: number
}

export class OutputCapture {
  /** Bytes so far. */
  bytes = 0
  /** Line ends so far. */
  newlines = 0
  readonly #limits: CaptureLimits
  readonly #decoder = new StringDecoder("utf8")
  #head = ""
  #tail = ""
  #chars = 0
  #held: Array<Buffer> = []

  constructor(limits: CaptureLimits) {
    this.#limits = limits
  }

  /** Takes a chunk; returns the text that it completes. */
  push(chunk: Buffer): string {
    this.bytes += chunk.length
    this.#held.push(chunk)
    return this.#take(this.#decoder.write(chunk))
  }

  /** The output is over: returns what an unfinished character leaves. */
  end(): string {
    return this.#take(this.#decoder.end())
  }

  /** Whether the bytes in memory are more than may stay there. */
  get overflowing(): boolean {
    return this.bytes > this.#limits.memoryBytes
  }

  /** The bytes in memory, which are then given up. */
  release(): ReadonlyArray<Buffer> {
    const held = this.#held
    this.#held = []
    return held
  }

  /** Whether {@link text} leaves something out. */
  get truncated(): boolean {
    return this.#chars > this.#limits.headChars + this.#limits.tailChars
  }

  /** All of it, or the start and the end around a note. */
  text(note: (omittedChars: number) => string): string {
    const { tailChars } = this.#limits
    if (!this.truncated) return this.#head + this.#tail
    const head = cutAtLine(wholeEnd(this.#head))
    const tail = fromLine(this.#tail.slice(-tailChars))
    return `${head}\n${note(this.#chars - head.length - tail.length)}\n${tail}`
  }

  #take(text: string): string {
    if (text === "") return text
    this.#chars += text.length
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) this.newlines++
    const room = this.#limits.headChars - this.#head.length
    let rest = text
    if (room > 0) {
      this.#head += text.slice(0, room)
      rest = text.slice(room)
    }
    this.#tail += rest
    // Cut now and then, not at every chunk.
    if (this.#tail.length > 4 * this.#limits.tailChars) this.#tail = this.#tail.slice(-this.#limits.tailChars)
    return text
  }
}

/** Without half of a character at the end. */
const wholeEnd = (text: string): string => {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text
}

/** Up to the last line end where that loses little. */
const cutAtLine = (text: string): string => {
  const end = text.lastIndexOf("\n")
  return end > text.length - 2000 && end > 0 ? text.slice(0, end) : text
}

/** From the first line start where that loses little; never from the middle of a character. */
const fromLine = (text: string): string => {
  const start = text.indexOf("\n")
  if (start >= 0 && start < 2000 && start + 1 < text.length) return text.slice(start + 1)
  const first = text.charCodeAt(0)
  return first >= 0xdc00 && first <= 0xdfff ? text.slice(1) : text
}

/** Text as a model can read it: no terminal escapes, lines that a carriage return overwrote dropped, control characters shown. */
export const readable = (text: string): string =>
  text
    // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences are what is looked for
    .replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g, "")
    .replace(/\r+\n/g, "\n")
    .replace(/[^\n]*\r(?!\n)/g, "")
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]/g, "\ufffd")
