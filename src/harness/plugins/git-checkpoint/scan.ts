/**
 * A workspace before a command and after it. Before: every file has its content kept, in git or in the store, within limits. After: what
 * differs by its stamp is read. A file whose stamp is so young that a later change could not be told from it is always read.
 */
import type { BigIntStats } from "node:fs"
import { relative } from "node:path"
import { type Image, type PathChange, sameImage } from "../../../domain/checkpoint.ts"
import type { Blobs } from "./blobs.ts"
import { gitBlobs, gitDirectories, takeBlobs } from "./git-blobs.ts"
import { imageAt, modeOf, stampOf } from "./image.ts"
import { type WalkOptions, walk } from "./walk.ts"

export interface ScanLimits {
  readonly maxEntries: number
  /** Bytes of one file. */
  readonly maxFileBytes: number
  /** Bytes that one scan copies at most. */
  readonly maxBytes: number
}

export interface ScanOptions extends Pick<WalkOptions, "own" | "skip"> {
  readonly root: string
  readonly blobs: Blobs
  readonly limits: ScanLimits
}

/** How a path was: kept as an image, or as a blob of git. */
type Kept = Image | { readonly type: "git"; readonly mode: number; readonly size: number; readonly blob: string }

interface Entry {
  readonly stamp: string
  /** Too young to be told apart by its stamp. */
  readonly young: boolean
  readonly kept: Kept
}

/** Everything in a workspace; kept as JSON in the store. */
export interface Manifest {
  readonly root: string
  readonly roots: ReadonlyArray<string>
  readonly entries: ReadonlyArray<readonly [path: string, entry: Entry]>
}

/** What earlier scans of a workspace found out, by path. */
export type ScanMemory = Map<string, Entry>

/** Clocks of file systems tick up to this coarsely, in ms. */
const tickMs = 100

/** Files from which on git is asked which of them it has. */
const askGitFrom = 32

const copiesAtOnce = 8

const isYoung = (stat: BigIntStats, now: number): boolean => Number(stat.ctimeMs) > now - tickMs

/** What is kept without reading anything, or null for a file. */
const cheapImage = async (path: string, stat: BigIntStats): Promise<Image | null> =>
  stat.isFile() ? null : imageAt(path, { blobs: null })

/** The workspace as it is; null when it is too large. `memory` is brought up to date. */
export const scan = async (options: ScanOptions, memory: ScanMemory, now: number): Promise<Manifest | null> => {
  const { blobs, limits, own, root, skip } = options
  const roots = [root, ...(await gitDirectories(root))]
  const found = await walk({ roots, own, skip, maxEntries: limits.maxEntries })
  if (found === null) return null
  const entries = new Map<string, Entry>()
  const unknown: Array<readonly [string, BigIntStats]> = []
  for (const [path, stat] of found) {
    const stamp = stampOf(stat)
    const known = memory.get(path)
    if (known !== undefined && known.stamp === stamp && !known.young) {
      entries.set(path, known)
      continue
    }
    const kept = await cheapImage(path, stat)
    if (kept === null) unknown.push([path, stat])
    else entries.set(path, { stamp, young: isYoung(stat, now), kept })
  }
  const inGit = unknown.length < askGitFrom ? new Map<string, string>() : await askGit(root, unknown)
  const copies: Array<readonly [string, BigIntStats]> = []
  for (const [path, stat] of unknown) {
    const blob = inGit.get(path)
    if (blob === undefined || isYoung(stat, now)) copies.push([path, stat])
    else {
      const kept: Kept = { type: "git", mode: modeOf(stat), size: Number(stat.size), blob }
      entries.set(path, { stamp: stampOf(stat), young: false, kept })
    }
  }
  // The small ones first, so that as many as possible are kept.
  copies.sort(([, a], [, b]) => Number(a.size - b.size))
  let left = limits.maxBytes
  const keep = async ([path, stat]: readonly [string, BigIntStats]): Promise<void> => {
    const fits = Number(stat.size) <= left
    left -= fits ? Number(stat.size) : 0
    const kept: Image = fits
      ? await imageAt(path, { blobs, maxBytes: limits.maxFileBytes })
      : { type: "other", why: `a file of ${stat.size} bytes, beyond the ${limits.maxBytes} that one scan keeps` }
    entries.set(path, { stamp: stampOf(stat), young: isYoung(stat, now), kept })
  }
  const rest = copies.values()
  await Promise.all(
    Array.from({ length: copiesAtOnce }, async () => {
      for (const copy of rest) await keep(copy)
    }),
  )
  memory.clear()
  for (const [path, entry] of entries) memory.set(path, entry)
  const sorted = [...entries].sort(([a], [b]) => (a < b ? -1 : 1))
  return { root, roots, entries: sorted }
}

const askGit = async (
  root: string,
  unknown: ReadonlyArray<readonly [string, BigIntStats]>,
): Promise<ReadonlyMap<string, string>> => {
  const sizes = new Map<string, number>()
  const full = new Map<string, string>()
  for (const [path, stat] of unknown) {
    const below = relative(root, path)
    sizes.set(below, Number(stat.size))
    full.set(below, path)
  }
  const found = await gitBlobs(root, sizes)
  return new Map([...found].map(([below, blob]) => [full.get(below) ?? below, blob]))
}

/** What changed since a manifest was made, each with its content of then kept in the store. */
export const changesSince = async (manifest: Manifest, options: ScanOptions): Promise<ReadonlyArray<PathChange>> => {
  const { blobs, limits, own, root, skip } = options
  // What came into being may be much; what was there is looked at in any case.
  const found = await walk({ roots: manifest.roots, own, skip, maxEntries: limits.maxEntries * 4 })
  const before = new Map(manifest.entries)
  const touched: Array<readonly [string, Kept]> = []
  for (const [path, entry] of before) {
    const stat = found?.get(path)
    if (stat === undefined || stampOf(stat) !== entry.stamp || entry.young) touched.push([path, entry.kept])
  }
  for (const path of found?.keys() ?? []) if (!before.has(path)) touched.push([path, { type: "absent" }])
  const wanted = touched.flatMap(([, kept]) => (kept.type === "git" ? [kept.blob] : []))
  const taken = wanted.length === 0 ? new Map<string, never>() : await takeBlobs(root, wanted, blobs)
  const changes: Array<PathChange> = []
  for (const [path, kept] of touched) {
    const was = imageOf(kept, taken)
    const after = await imageAt(path, { blobs: null })
    if (was.type === "other" && after.type === "other") {
      const stat = found?.get(path)
      if (stat !== undefined && stampOf(stat) === before.get(path)?.stamp) continue
    }
    if (!sameImage(was, after)) changes.push({ path, before: was, after })
  }
  return changes.sort((a, b) => (a.path < b.path ? -1 : 1))
}

const imageOf = (kept: Kept, taken: ReadonlyMap<string, { readonly hash: string; readonly size: number }>): Image => {
  if (kept.type !== "git") return kept
  const found = taken.get(kept.blob)
  return found === undefined
    ? { type: "other", why: "git no longer has its content" }
    : { type: "file", mode: kept.mode, ...found }
}
