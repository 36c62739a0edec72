/**
 * A transcript file: lines of JSON, appended, with what is needed to go on after a death.
 *
 * 1. Lines of entries come in the order of their ids. The newest id in the file is where the next append begins, so nothing is written
 *    twice and nothing is left out, whenever the process dies: what is missing is still in the database.
 * 2. A line that a death left without its end is cut off when the file is opened next.
 * 3. A file that is full becomes `….1.jsonl`, that one `….2.jsonl`; the oldest goes. A new file's head names the id it goes on from; where
 *    a death came between the two, the newest rotated file tells.
 * 4. Files are 0600 in a directory of 0700; a link in the place of a file is refused.
 */
import { constants } from "node:fs"
import { type FileHandle, lstat, open, rename, rm } from "node:fs/promises"
import { errorCode } from "../../../domain/error-code.ts"
import { isJsonObject, type Json } from "../../../domain/json.ts"

export interface Rotation {
  readonly maxBytes: number
  /** Rotated files that are kept beside the newest one. */
  readonly keep: number
}

/** Where a transcript stands. */
export interface Standing {
  /** The newest entry that is in it; 0 for none. */
  readonly lastEntry: number
  /** Tasks of the newest runs whose end is in it. */
  readonly runs: ReadonlySet<number>
  /** Bytes of the newest file; 0 where it has to be begun. */
  readonly bytes: number
}

const rotated = (path: string, number: number): string => path.replace(/\.jsonl$/, `.${number}.jsonl`)

const openAt = (path: string, flags: number): Promise<FileHandle> =>
  open(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK, 0o600)

const missing = (error: unknown): null => {
  if (errorCode(error) === "ENOENT") return null
  throw error
}

/** First piece that is read from the end, in bytes; it grows while no entry is found in it. */
const firstPiece = 64 * 1024

/** What whole lines say, the newest last. */
const readLines = (text: string): { readonly lastEntry: number | null; readonly runs: ReadonlySet<number> } => {
  let lastEntry: number | null = null
  const runs = new Set<number>()
  for (const line of text.split("\n")) {
    let value: Json
    try {
      value = JSON.parse(line)
    } catch {
      // The first line of a piece may be half of one; a damaged line says nothing.
      continue
    }
    if (!isJsonObject(value)) continue
    if (value.type === "entry" && typeof value.id === "number") lastEntry = value.id
    if (value.type === "transcript" && typeof value.after === "number") lastEntry ??= value.after
    if (value.type === "run" && typeof value.task === "number") runs.add(value.task)
  }
  return { lastEntry, runs }
}

/** Reads the end of an open file and cuts off a line without an end. */
const standingOf = async (handle: FileHandle): Promise<Standing> => {
  const { size } = await handle.stat()
  for (let piece = firstPiece; ; piece *= 4) {
    const length = Math.min(piece, size)
    const buffer = Buffer.alloc(length)
    let filled = 0
    while (filled < length) {
      const { bytesRead } = await handle.read(buffer, filled, length - filled, size - length + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    const end = buffer.lastIndexOf(0x0a)
    const { lastEntry, runs } = readLines(buffer.subarray(0, end + 1).toString("utf8"))
    if (length < size && lastEntry === null) continue
    const whole = size - length + end + 1
    if (whole < size) await handle.truncate(whole)
    return { lastEntry: lastEntry ?? 0, runs, bytes: whole }
  }
}

/** Opens what there is; the directory exists. */
const standing = async (path: string): Promise<Standing> => {
  for (const candidate of [path, rotated(path, 1)]) {
    const handle = await openAt(candidate, constants.O_RDWR).catch(missing)
    if (handle === null) continue
    try {
      const found = await standingOf(handle)
      if (found.bytes > 0 || candidate !== path) return candidate === path ? found : { ...found, bytes: 0 }
    } finally {
      await handle.close()
    }
  }
  return { lastEntry: 0, runs: new Set(), bytes: 0 }
}

/** Where a file stands: as it was known, unless somebody else has written since. Throws the system's error. */
export const standingNow = async (path: string, known: Standing | null): Promise<Standing> => {
  if (known === null) return standing(path)
  const found = await lstat(path).catch(missing)
  return (found?.size ?? 0) === known.bytes ? known : standing(path)
}

const rotate = async (path: string, keep: number): Promise<void> => {
  if (keep === 0) return rm(path, { force: true })
  for (let number = keep; number >= 1; number--) {
    const from = number === 1 ? path : rotated(path, number - 1)
    await rename(from, rotated(path, number)).catch(missing)
  }
}

/**
 * Appends whole lines and gives the size of the file then. `head` is the first line of a new file. An entry is never parted from its line:
 * a file may become larger than its limit by one append.
 */
export const append = async (
  path: string,
  before: Standing,
  lines: ReadonlyArray<string>,
  rotation: Rotation,
  head: () => string,
): Promise<number> => {
  const full = before.bytes >= rotation.maxBytes
  if (full) await rotate(path, rotation.keep)
  const begins = full || before.bytes === 0
  const text = `${[...(begins ? [head()] : []), ...lines].join("\n")}\n`
  const handle = await openAt(path, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT)
  try {
    await handle.appendFile(text)
  } finally {
    await handle.close()
  }
  return (begins ? 0 : before.bytes) + Buffer.byteLength(text)
}
