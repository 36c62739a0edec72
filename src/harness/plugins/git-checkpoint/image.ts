/**
 * What is at a path, as an {@link Image}; a file's content is kept while it is looked at, or only hashed.
 */
import { createHash } from "node:crypto"
import type { BigIntStats } from "node:fs"
import { createReadStream } from "node:fs"
import { lstat, readlink } from "node:fs/promises"
import { absent, type Image } from "../../../domain/checkpoint.ts"
import { errorCode } from "../../../domain/error-code.ts"
import { reasonOf } from "../../../tools/workspace.ts"
import type { Blobs } from "./blobs.ts"

/** Times that a file is read again when it changed while it was read. */
const readAttempts = 3

/** `lstat`, or null where nothing is there. */
export const statOf = async (path: string): Promise<BigIntStats | null> => {
  try {
    return await lstat(path, { bigint: true })
  } catch (cause) {
    if (errorCode(cause) === "ENOENT" || errorCode(cause) === "ENOTDIR") return null
    throw cause
  }
}

export const modeOf = (stat: BigIntStats): number => Number(stat.mode & 0o7777n)

/** Everything that tells a changed file from an unchanged one without reading it. */
export const stampOf = (stat: BigIntStats): string =>
  `${stat.dev}:${stat.ino}:${stat.mode}:${stat.size}:${stat.mtimeNs}:${stat.ctimeNs}`

const hashOf = async (path: string): Promise<{ readonly hash: string; readonly size: number }> => {
  const digest = createHash("sha256")
  let size = 0
  for await (const chunk of createReadStream(path)) {
    digest.update(chunk)
    size += chunk.length
  }
  return { hash: digest.digest("hex"), size }
}

const kindOf = (stat: BigIntStats): string => (stat.isFIFO() ? "a pipe" : stat.isSocket() ? "a socket" : "a device")

/**
 * What is at `path`. With `blobs` the content of a file is kept; files beyond `maxBytes` are `other` then. Without, it is only hashed.
 */
export const imageAt = async (
  path: string,
  options: { readonly blobs: Blobs | null; readonly maxBytes?: number },
): Promise<Image> => {
  const { blobs, maxBytes = Number.POSITIVE_INFINITY } = options
  try {
    for (let attempt = 1; ; attempt++) {
      const before = await statOf(path)
      if (before === null) return absent
      if (before.isDirectory()) return { type: "directory", mode: modeOf(before) }
      if (before.isSymbolicLink()) return { type: "symlink", target: await readlink(path) }
      if (!before.isFile()) return { type: "other", why: kindOf(before) }
      if (Number(before.size) > maxBytes) {
        return { type: "other", why: `a file of ${before.size} bytes, more than the ${maxBytes} that are kept` }
      }
      const { hash, size } = blobs === null ? await hashOf(path) : await blobs.putFile(path)
      const after = await statOf(path)
      if (attempt >= readAttempts || (after !== null && stampOf(after) === stampOf(before))) {
        return { type: "file", mode: modeOf(before), size, hash }
      }
    }
  } catch (cause) {
    if (errorCode(cause) === "ENOENT") return absent
    return { type: "other", why: `unreadable: ${reasonOf(cause)}` }
  }
}
