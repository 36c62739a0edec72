/**
 * Which hooks files of projects a person has approved: a file of the data directory that names each by path and by the hash of its text.
 * A changed file is a new one. The scripts that its commands name are not part of the hash.
 */
import { createHash, randomUUID } from "node:crypto"
import { readFile, rename, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { errorCode } from "../../../domain/error-code.ts"
import { isRecord } from "../../../domain/json.ts"
import { makeDirectories } from "../../../storage/directories.ts"

/** Hash of a hooks file's text as it is read: UTF-8, line ends as `\n`. */
export const hashOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`

export const trustFile = (dataDir: string): string => join(dataDir, "trusted-hooks.json")

/** Hash by path. A file that is not readable as such trusts nothing. */
export const readTrust = (text: string): ReadonlyMap<string, string> => {
  try {
    const value: unknown = JSON.parse(text)
    if (!isRecord(value)) return new Map()
    return new Map(
      Object.entries(value).flatMap(
        ([path, hash]): ReadonlyArray<readonly [string, string]> => (typeof hash === "string" ? [[path, hash]] : []),
      ),
    )
  } catch {
    return new Map()
  }
}

/** Sets the hash of each path, or takes it out (null). The file is replaced as a whole, for its owner only. */
export const changeTrust = async (dataDir: string, changes: ReadonlyMap<string, string | null>): Promise<void> => {
  makeDirectories(dataDir, 0o700)
  const path = trustFile(dataDir)
  const before = await readFile(path, "utf8").catch((error: unknown) => {
    if (errorCode(error) === "ENOENT") return "{}"
    throw error
  })
  const trusted = new Map(readTrust(before))
  for (const [file, hash] of changes) {
    if (hash === null) trusted.delete(file)
    else trusted.set(file, hash)
  }
  const temporary = join(dataDir, `.trusted-hooks-${randomUUID()}.tmp`)
  try {
    const text = `${JSON.stringify(Object.fromEntries([...trusted].sort()), null, 2)}\n`
    await writeFile(temporary, text, { mode: 0o600, flush: true })
    await rename(temporary, path)
  } finally {
    await rm(temporary, { force: true })
  }
}
