/**
 * Content search over files, the work of `grep`: lines that match a regular expression, with context, in the order of paths.
 * Synchronous: it runs in the sandbox, which ends it when the expression does not.
 */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs"
import { basename } from "node:path"
import { compileGlob } from "./glob.ts"
import type { JobContext } from "./job.ts"
import { detectFormat, sampleBytes } from "./text-encoding.ts"
import { walk } from "./walk.ts"

export interface SearchInput {
  /** Absolute canonical file or directory. */
  readonly path: string
  /** Workspace root. */
  readonly top: string
  readonly isDirectory: boolean
  readonly pattern: string
  readonly literal: boolean
  readonly ignoreCase: boolean
  readonly glob: string | null
  /** Lines before and after each match. */
  readonly context: number
  /** Matching lines at most. */
  readonly limit: number
  /** Characters of a line that are kept. */
  readonly lineChars: number
  /** Characters of all lines at most. */
  readonly totalChars: number
}

export interface FoundLine {
  /** Relative to the search path; the file's name when that is a file. */
  readonly path: string
  /** From 1. */
  readonly line: number
  readonly text: string
  readonly match: boolean
}

export type SearchOutput =
  | {
      readonly _tag: "Found"
      readonly lines: ReadonlyArray<FoundLine>
      readonly matches: number
      readonly files: number
      /** Files looked into. */
      readonly searched: number
      readonly binary: number
      readonly unreadable: number
      readonly limit: "none" | "matches" | "size"
    }
  | { readonly _tag: "InvalidPattern"; readonly reason: string }

const chunkBytes = 1 << 20
/** A longer line is searched in pieces of this many characters, so that one line never fills the heap. */
const pieceChars = 1 << 22

/** Compiles what models write: a leading `(?i)`, and escapes that only the older syntax allows. */
const compilePattern = (input: Pick<SearchInput, "pattern" | "literal" | "ignoreCase">): RegExp => {
  let { pattern: source, ignoreCase } = input
  if (input.literal) source = source.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&")
  else if (source.startsWith("(?i)")) {
    source = source.slice(4)
    ignoreCase = true
  }
  const flags = ignoreCase ? "i" : ""
  try {
    return new RegExp(source, `${flags}u`)
  } catch {
    return new RegExp(source, flags)
  }
}

/** The part of a long line around the first match. */
const excerpt = (line: string, index: number, chars: number): string => {
  if (line.length <= chars) return line
  const from = Math.max(0, Math.min(index - Math.floor(chars / 4), line.length - chars))
  const to = from + chars
  return `${from > 0 ? "…" : ""}${line.slice(from, to)}${to < line.length ? "…" : ""} [line of ${line.length} characters]`
}

/** The lines of an open file, without their ends; undefined when it is binary or not a regular file. */
function* linesOf(descriptor: number): Generator<string, boolean> {
  const buffer = Buffer.allocUnsafe(chunkBytes)
  let size = readSync(descriptor, buffer, 0, chunkBytes, null)
  const format = detectFormat(buffer.subarray(0, Math.min(size, sampleBytes)))
  if (format === undefined) return false
  const decoder = new TextDecoder(format.encoding)
  let carry = ""
  while (size > 0) {
    const text = carry + decoder.decode(buffer.subarray(0, size), { stream: true })
    let from = 0
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      yield text.charCodeAt(end - 1) === 13 && end > from ? text.slice(from, end - 1) : text.slice(from, end)
      from = end + 1
    }
    carry = text.slice(from)
    while (carry.length > pieceChars) {
      yield carry.slice(0, pieceChars)
      carry = carry.slice(pieceChars)
    }
    size = readSync(descriptor, buffer, 0, chunkBytes, null)
  }
  carry += decoder.decode()
  if (carry !== "") yield carry.endsWith("\r") ? carry.slice(0, -1) : carry
  return true
}

/** Searches. */
export const search = (input: SearchInput, job: JobContext): SearchOutput => {
  let regex: RegExp
  try {
    regex = compilePattern(input)
  } catch (error) {
    return { _tag: "InvalidPattern", reason: error instanceof Error ? error.message : String(error) }
  }
  const glob = input.glob === null ? undefined : compileGlob(input.glob)
  const lines: Array<FoundLine> = []
  const files = new Set<string>()
  let [matches, searched, binary, unreadable, chars] = [0, 0, 0, 0, 0]
  let limit: "none" | "matches" | "size" = "none"

  const keep = (path: string, line: number, text: string, match: boolean) => {
    lines.push({ path, line, text, match })
    chars += text.length + path.length + 8
    if (chars >= input.totalChars) limit = "size"
  }

  const searchFile = (absolute: string, path: string) => {
    job.at(path)
    let descriptor: number
    try {
      // Not blocking, not through a link: what the walk saw may have been replaced meanwhile.
      descriptor = openSync(absolute, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
    } catch {
      unreadable++
      return
    }
    try {
      if (!fstatSync(descriptor).isFile()) return
      searched++
      const reader = linesOf(descriptor)
      const before: Array<string> = []
      let [number, after, last] = [0, 0, 0]
      for (let next = reader.next(); ; next = reader.next()) {
        if (next.done === true) {
          if (!next.value) binary++
          return
        }
        const line = next.value
        number++
        const found = regex.exec(line)
        if (found !== null) {
          if (matches === input.limit) {
            limit = "matches"
            return
          }
          matches++
          files.add(path)
          const first = number - before.length
          for (const [offset, text] of before.entries()) {
            if (first + offset > last) keep(path, first + offset, excerpt(text, 0, input.lineChars), false)
          }
          keep(path, number, excerpt(line, found.index, input.lineChars), true)
          last = number
          after = input.context
        } else if (after > 0) {
          after--
          keep(path, number, excerpt(line, 0, input.lineChars), false)
          last = number
        }
        if (limit !== "none") return
        if (input.context > 0) {
          before.push(line)
          if (before.length > input.context) before.shift()
        }
      }
    } catch {
      unreadable++
    } finally {
      closeSync(descriptor)
    }
  }

  if (!input.isDirectory) searchFile(input.path, basename(input.path))
  else {
    const found = walk({
      root: input.path,
      top: input.top,
      ignored: false,
      at: job.at,
      unreadable: () => {
        unreadable++
      },
    })
    for (const entry of found) {
      if (entry.kind !== "file" || (glob !== undefined && !glob.matches(entry.path, false))) continue
      searchFile(entry.absolute, entry.path)
      if (limit !== "none") break
    }
  }
  return { _tag: "Found", lines, matches, files: files.size, searched, binary, unreadable, limit }
}
