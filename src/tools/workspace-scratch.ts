/**
 * Scratch directories: one for each conversation below a common base, made when a task first needs it and removed with the task or, for one
 * that lives with its conversation, by the sweep.
 */
import { mkdir, readdir, realpath, rm, stat, utimes } from "node:fs/promises"
import { join } from "node:path"

/** Below a base that others use too, only these are ours. */
const prefix = "super-pi-scratch-"

/** Where the scratch directory of a conversation is. `database` tells conversations of several databases apart. */
export const scratchPath = (base: string, database: string, conversation: number): string =>
  join(base, `${prefix}${database}-${conversation}`)

/** A new, empty directory in place of what may be there. Gives its canonical path. */
export const freshScratch = async (path: string): Promise<string> => {
  await rm(path, { recursive: true, force: true })
  await mkdir(path, { recursive: true, mode: 0o700 })
  return realpath(path)
}

/** The directory as it is, made where it is missing; whether it was missing. Its clock begins anew. */
export const keptScratch = async (path: string): Promise<{ readonly path: string; readonly fresh: boolean }> => {
  const there = await stat(path).catch(() => null)
  if (there === null) return { path: await freshScratch(path), fresh: true }
  const now = new Date()
  await utimes(path, now, now)
  return { path: await realpath(path), fresh: false }
}

export const removeScratch = (path: string): Promise<void> => rm(path, { recursive: true, force: true })

/** Removes the scratch directories below `base` that nobody used for `ttlHours`; gives how many. */
export const sweepScratch = async (base: string, ttlHours: number, now: number): Promise<number> => {
  let removed = 0
  for (const name of await readdir(base).catch(() => [])) {
    if (!name.startsWith(prefix)) continue
    const path = join(base, name)
    const found = await stat(path).catch(() => null)
    if (found === null || !found.isDirectory() || now - found.mtimeMs < ttlHours * 3600_000) continue
    await removeScratch(path)
    removed++
  }
  return removed
}
