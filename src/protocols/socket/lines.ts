/**
 * Line framing: bytes in, whole lines out. One splitter belongs to one connection. It keeps at most one unfinished line of at most
 * `limit` bytes; a longer one is reported once, at the moment it passes the limit, and skipped up to its end. Pure but for its own buffer.
 */

/** A whole line without its end, not yet decoded, or a line that passed the limit. */
export type Line = { readonly type: "line"; readonly bytes: Uint8Array } | { readonly type: "tooLong" }

const newline = 0x0a

export interface LineSplitter {
  /** The lines that `chunk` completes, in order. */
  readonly push: (chunk: Uint8Array) => ReadonlyArray<Line>
  /** What is left when the input ended: a last line without its end, or null. */
  readonly end: () => Line | null
  /** Bytes of the unfinished line, never more than the limit. */
  readonly pending: () => number
}

/** A splitter for lines of at most `limit` bytes. */
export const makeLineSplitter = (limit: number): LineSplitter => {
  let parts: Array<Uint8Array> = []
  let size = 0
  let skipping = false

  const take = (tail: Uint8Array): Uint8Array => {
    if (parts.length === 0) return tail
    parts.push(tail)
    const whole = Buffer.concat(parts)
    parts = []
    size = 0
    return whole
  }

  const drop = () => {
    parts = []
    size = 0
  }

  return {
    push: (chunk) => {
      const out: Array<Line> = []
      let start = 0
      while (start < chunk.length) {
        const end = chunk.indexOf(newline, start)
        const stop = end === -1 ? chunk.length : end
        if (skipping) {
          if (end !== -1) skipping = false
        } else if (size + (stop - start) > limit) {
          drop()
          out.push({ type: "tooLong" })
          skipping = end === -1
        } else if (end === -1) {
          parts.push(chunk.subarray(start))
          size += stop - start
        } else {
          out.push({ type: "line", bytes: take(chunk.subarray(start, end)) })
        }
        start = stop + 1
      }
      return out
    },
    end: () => {
      if (size === 0) return null
      return { type: "line", bytes: take(new Uint8Array(0)) }
    },
    pending: () => size,
  }
}

const utf8 = new TextDecoder("utf-8", { fatal: true })

/** The text of a line, or null when its bytes are not UTF-8. */
export const decodeText = (bytes: Uint8Array): string | null => {
  try {
    return utf8.decode(bytes)
  } catch {
    return null
  }
}
