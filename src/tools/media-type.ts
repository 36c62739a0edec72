/**
 * The media type of a content: what its first bytes say, else what its name ends in, else text or bytes. Pure.
 */
import { extname } from "node:path"
import { sniffImage } from "./file-kind.ts"
import { decodeText, detectFormat, sampleBytes } from "./text-encoding.ts"

const byExtension: Readonly<Record<string, string>> = {
  ".csv": "text/csv",
  ".css": "text/css",
  ".gz": "application/gzip",
  ".html": "text/html",
  ".js": "text/javascript",
  ".json": "application/json",
  ".md": "text/markdown",
  ".pdf": "application/pdf",
  ".svg": "image/svg+xml",
  ".tar": "application/x-tar",
  ".ts": "text/x-typescript",
  ".xml": "application/xml",
  ".yaml": "application/yaml",
  ".yml": "application/yaml",
  ".zip": "application/zip",
}

/** The text of bytes that are text in one of the known encodings, else undefined. */
export const textIn = (content: Uint8Array): string | undefined => {
  const format = detectFormat(content.subarray(0, sampleBytes))
  return format === undefined ? undefined : decodeText(content, format)
}

export const mediaTypeOf = (name: string, content: Uint8Array): string =>
  sniffImage(Buffer.from(content.buffer, content.byteOffset, content.byteLength))?.mediaType ??
  byExtension[extname(name).toLowerCase()] ??
  (textIn(content) === undefined ? "application/octet-stream" : "text/plain")
