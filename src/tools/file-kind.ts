/**
 * What a file is by its first bytes: an image that models can see with its size in pixels, or a known binary kind. Pure.
 */

export interface ImageInfo {
  readonly mediaType: "image/png" | "image/jpeg" | "image/gif" | "image/webp"
  /** Pixels; null where the header does not tell. */
  readonly width: number | null
  readonly height: number | null
}

const ascii = (bytes: Buffer, from: number, to: number): string => bytes.toString("latin1", from, to)

const jpegSize = (bytes: Buffer): { readonly width: number; readonly height: number } | undefined => {
  let at = 2
  while (at + 9 < bytes.length) {
    if (bytes[at] !== 0xff) return undefined
    const marker = bytes[at + 1] ?? 0
    if (marker === 0xff) {
      at++
      continue
    }
    // Start of frame, but not DHT (C4), JPG (C8) and DAC (CC).
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      return { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) }
    }
    const bare = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8)
    at += bare ? 2 : 2 + bytes.readUInt16BE(at + 2)
  }
  return undefined
}

const webpSize = (bytes: Buffer): { readonly width: number; readonly height: number } | undefined => {
  if (bytes.length < 30) return undefined
  switch (ascii(bytes, 12, 16)) {
    case "VP8 ":
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff }
    case "VP8L": {
      const bits = bytes.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 }
    }
    case "VP8X":
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 }
    default:
      return undefined
  }
}

/** The image in these bytes, or undefined. The whole file, or at least its first 256 KiB, finds the size of every JPEG in practice. */
export const sniffImage = (bytes: Buffer): ImageInfo | undefined => {
  const unknown = { width: null, height: null }
  if (bytes.length >= 24 && bytes.readUInt32BE(0) === 0x89504e47 && bytes.readUInt32BE(4) === 0x0d0a1a0a) {
    return { mediaType: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) }
  }
  if (bytes.length >= 4 && bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff) {
    return { mediaType: "image/jpeg", ...(jpegSize(bytes) ?? unknown) }
  }
  if (bytes.length >= 10 && /^GIF8[79]a$/.test(ascii(bytes, 0, 6))) {
    return { mediaType: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) }
  }
  if (bytes.length >= 16 && ascii(bytes, 0, 4) === "RIFF" && ascii(bytes, 8, 12) === "WEBP") {
    return { mediaType: "image/webp", ...(webpSize(bytes) ?? unknown) }
  }
  return undefined
}

const signatures: ReadonlyArray<readonly [string, string, string]> = [
  ["%PDF-", "a PDF document", "use bash with pdftotext"],
  ["PK\u0003\u0004", "a ZIP archive (or an office document)", "use bash with unzip -l"],
  ["\u001f\u008b", "gzip data", "use bash with zcat"],
  ["\u007fELF", "an executable", "use bash with file or nm"],
  ["SQLite format 3\u0000", "an SQLite database", "use bash with sqlite3"],
  ["7z\u00bc\u00af", "a 7z archive", "use bash with 7z l"],
  ["BZh", "bzip2 data", "use bash with bzcat"],
  ["\u00fd7zXZ", "xz data", "use bash with xzcat"],
  ["(\u00b5/\u00fd", "zstd data", "use bash with zstdcat"],
  ["BM", "a BMP image", "convert it to PNG first"],
]

/** What a binary file is and what to do with it. */
export const describeBinary = (bytes: Buffer): { readonly what: string; readonly hint: string } => {
  for (const [signature, what, hint] of signatures) {
    if (ascii(bytes, 0, signature.length) === signature) return { what, hint }
  }
  return { what: "a binary file", hint: "use bash with file, xxd or strings" }
}
