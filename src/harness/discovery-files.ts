/**
 * Reads discovered files, and remembers them until they change: the same file is the same text, and a request costs a `stat` per file.
 * Nothing here is fatal: what cannot be used is a fault that says why, for one report.
 */
import { constants, type Stats } from "node:fs"
import { open, readdir, realpath, stat } from "node:fs/promises"
import { join, sep } from "node:path"
import { errorCode } from "../domain/error-code.ts"
import { sizeText } from "../tools/limits.ts"
import { byName } from "../tools/walk.ts"
import { reasonOf } from "../tools/workspace.ts"
import { Bounded } from "./bounded.ts"

/** What became of one path. `version` changes with the file. */
export type Discovered =
  | { readonly type: "text"; readonly path: string; readonly text: string; readonly version: string }
  | { readonly type: "missing"; readonly path: string }
  | { readonly type: "fault"; readonly path: string; readonly reason: string; readonly version: string }

/** Files remembered by one plugin. */
const remembered = 2_000

/** Entries of one directory that are looked at. */
const maxEntries = 1_000

const versionOf = (found: Stats): string => `${found.dev}:${found.ino}:${found.size}:${found.mtimeMs}:${found.ctimeMs}`

const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)

const decode = (bytes: Uint8Array): string | null => {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes)
    return text.includes("\0") ? null : text.replace(/\r\n?/g, "\n")
  } catch {
    return null
  }
}

/** At most `limit` bytes of a regular file; null where there are more. A pipe in its place does not hold the reader up. */
const readAtMost = async (path: string, limit: number): Promise<Buffer | null> => {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    const buffer = Buffer.allocUnsafe(limit + 1)
    let length = 0
    while (length < buffer.length) {
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length, length)
      if (bytesRead === 0) return buffer.subarray(0, length)
      length += bytesRead
    }
    return null
  } finally {
    await handle.close()
  }
}

export class DiscoveryFiles {
  readonly #maxBytes: number
  readonly #known = new Bounded<string, Exclude<Discovered, { readonly type: "missing" }>>(remembered)

  /** `maxBytes`: a larger file is a fault. */
  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /**
   * The text of a file: UTF-8 without its byte order mark, line ends as `\n`. `inside` is the directory that it may not leave through
   * links; null where it may.
   */
  async read(path: string, inside: string | null): Promise<Discovered> {
    const fault = (reason: string, version: string) => ({ type: "fault", path, reason, version }) as const
    let found: Stats
    try {
      found = await stat(path)
    } catch (error) {
      const code = errorCode(error)
      return code === "ENOENT" || code === "ENOTDIR" ? { type: "missing", path } : fault(reasonOf(error), code)
    }
    const version = versionOf(found)
    const known = this.#known.get(path)
    if (known !== undefined && known.version === version) return known
    const result = await this.#load(path, inside, found, version).catch((error: unknown) =>
      fault(reasonOf(error), version),
    )
    this.#known.set(path, result)
    return result
  }

  async #load(path: string, inside: string | null, found: Stats, version: string) {
    const fault = (reason: string) => ({ type: "fault", path, reason, version }) as const
    if (!found.isFile()) return fault(`expected a file, got ${found.isDirectory() ? "a directory" : "something else"}`)
    if (inside !== null) {
      const [real, root] = await Promise.all([realpath(path), realpath(inside)])
      if (!isInside(root, real)) return fault(`expected a file inside ${inside}, got a link to ${real}`)
    }
    const tooLarge = `expected at most ${sizeText(this.#maxBytes)}, got`
    if (found.size > this.#maxBytes) return fault(`${tooLarge} ${sizeText(found.size)}`)
    const bytes = await readAtMost(path, this.#maxBytes)
    if (bytes === null) return fault(`${tooLarge} more`)
    const text = decode(bytes)
    return text === null
      ? fault("expected UTF-8 text, got other bytes")
      : ({ type: "text", path, text, version } as const)
  }
}

/** What a directory holds: names in code unit order. */
export interface Listed {
  readonly files: ReadonlyArray<string>
  readonly directories: ReadonlyArray<string>
  /** Why it could not be read, or not all of it; null where all is well. */
  readonly fault: string | null
}

const nothing: Listed = { files: [], directories: [], fault: null }

/** Lists a directory; one that is not there is empty. Links count as what they lead to. */
export const listDirectory = async (path: string): Promise<Listed> => {
  try {
    const entries = (await readdir(path, { withFileTypes: true })).sort((a, b) => byName(a.name, b.name))
    const fault = entries.length > maxEntries ? `expected at most ${maxEntries} entries; the rest is left out` : null
    const files: Array<string> = []
    const directories: Array<string> = []
    for (const entry of entries.slice(0, maxEntries)) {
      const target = entry.isSymbolicLink() ? await stat(join(path, entry.name)).catch(() => entry) : entry
      if (target.isDirectory()) directories.push(entry.name)
      // A link that leads nowhere counts as a file: reading it says so.
      else files.push(entry.name)
    }
    return { files, directories, fault }
  } catch (error) {
    const code = errorCode(error)
    return code === "ENOENT" || code === "ENOTDIR" ? nothing : { ...nothing, fault: reasonOf(error) }
  }
}
