/**
 * Encodings of text files: which one a file is in, and both ways without loss. UTF-8 and UTF-16 (either order), with or without a byte
 * order mark. Pure.
 */

export type Encoding = "utf-8" | "utf-16le" | "utf-16be"

/** How a file's text is stored. */
export interface TextFormat {
  readonly encoding: Encoding
  /** Whether a byte order mark comes first. */
  readonly bom: boolean
}

/** How many bytes decide whether a file is text. */
export const sampleBytes = 8192

const bomOf: Record<Encoding, ReadonlyArray<number>> = {
  "utf-8": [0xef, 0xbb, 0xbf],
  "utf-16le": [0xff, 0xfe],
  "utf-16be": [0xfe, 0xff],
}

/** Length of the byte order mark. */
export const bomLength = (format: TextFormat): number => (format.bom ? bomOf[format.encoding].length : 0)

const startsWith = (bytes: Uint8Array, prefix: ReadonlyArray<number>): boolean =>
  bytes.length >= prefix.length && prefix.every((byte, index) => bytes[index] === byte)

/**
 * The format of a file from its first bytes, or undefined for a binary one. Without a mark: UTF-16 when every other byte of a sample of
 * at least four is zero and none of the rest is; UTF-8 when there is no zero byte at all.
 */
export const detectFormat = (sample: Uint8Array): TextFormat | undefined => {
  for (const encoding of ["utf-8", "utf-16le", "utf-16be"] as const) {
    if (startsWith(sample, bomOf[encoding])) return { encoding, bom: true }
  }
  const zeros = [0, 0]
  for (let index = 0; index < sample.length; index++) {
    if (sample[index] === 0) zeros[index & 1] = (zeros[index & 1] ?? 0) + 1
  }
  const [even = 0, odd = 0] = zeros
  if (even + odd === 0) return { encoding: "utf-8", bom: false }
  const half = Math.floor(sample.length / 2)
  if (half >= 2 && even === 0 && odd >= half * 0.9) return { encoding: "utf-16le", bom: false }
  if (half >= 2 && odd === 0 && even >= half * 0.9) return { encoding: "utf-16be", bom: false }
  return undefined
}

/** The text of a whole file without its mark; undefined when the bytes are not valid in that encoding. */
export const decodeText = (bytes: Uint8Array, format: TextFormat): string | undefined => {
  try {
    return new TextDecoder(format.encoding, { fatal: true, ignoreBOM: true }).decode(bytes.subarray(bomLength(format)))
  } catch {
    return undefined
  }
}

/** The bytes of a file with this text, its mark first where the format has one. */
export const encodeText = (text: string, format: TextFormat): Buffer => {
  const body = Buffer.from(text, format.encoding === "utf-8" ? "utf8" : "utf16le")
  if (format.encoding === "utf-16be") body.swap16()
  return format.bom ? Buffer.concat([Buffer.from(bomOf[format.encoding]), body]) : body
}
