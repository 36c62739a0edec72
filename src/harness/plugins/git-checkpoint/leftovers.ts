/**
 * Files that an atomic write of a process that died has left: they have a name of their own beside the file that was to be written. What is
 * younger than this process may be a write in progress, and stays.
 */
import { readdir, rm } from "node:fs/promises"
import { dirname, join } from "node:path"
import { statOf } from "./image.ts"

/** The name of a file of an atomic write. */
export const temporary = /^\.super-pi-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.tmp$/

/** Removes them beside the given paths; gives how many. */
export const removeLeftovers = async (
  paths: ReadonlyArray<string>,
  before: number = performance.timeOrigin,
): Promise<number> => {
  let removed = 0
  for (const directory of new Set(paths.map(dirname))) {
    for (const name of await readdir(directory).catch(() => [])) {
      if (!temporary.test(name)) continue
      const path = join(directory, name)
      const stat = await statOf(path).catch(() => null)
      if (stat === null || !stat.isFile() || Number(stat.mtimeMs) >= before) continue
      await rm(path, { force: true })
      removed++
    }
  }
  return removed
}
