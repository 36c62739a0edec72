/**
 * Limits that the built-in tools share. Sizes of text are characters, of files bytes.
 */
import type { SandboxLimits } from "./sandbox.ts"

/** Text that one result gives to the model. */
export const outputChars = 48 * 1024

/** Characters of one line that are shown. */
export const lineChars = 2000

/** Base64 characters of an image; providers refuse larger ones. */
export const maxImageChars = 4.5 * 1024 * 1024

/** Pixels of a side of an image; providers refuse larger ones. */
export const maxImageSide = 8000

/** Lines of a diff in `details`. */
export const diffLines = 600

/** The largest file that `edit` changes and that `write` diffs against. */
export const editBytes = 8 * 1024 * 1024

/** Work over a tree of files. */
export const treeWork: SandboxLimits = { deadlineMs: 20_000, heapMb: 256 }

/** Work on one text. */
export const textWork: SandboxLimits = { deadlineMs: 10_000, heapMb: 256 }

/** `1 line`, `2 lines`. */
export const counted = (count: number, noun: string, plural = `${noun}s`): string =>
  `${count.toLocaleString("en-US")} ${count === 1 ? noun : plural}`

/** `512 bytes`, `1.5 KB`, `2.0 GB`. */
export const sizeText = (bytes: number): string => {
  if (bytes < 1024) return counted(bytes, "byte")
  let [value, unit] = [bytes / 1024, "KB"]
  for (const next of ["MB", "GB", "TB"]) {
    if (value < 1024) break
    value /= 1024
    unit = next
  }
  return `${value.toFixed(1)} ${unit}`
}
