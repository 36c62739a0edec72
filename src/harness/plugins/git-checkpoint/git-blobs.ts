/**
 * Which files of a work tree git has byte for byte, so that they need no copy: tracked, unchanged by their stamp, and stored without
 * conversion. A line-end conversion makes a file shorter; so a blob of the file's own size is the file, unless a filter, a keyword expansion or an
 * encoding applies to it.
 */
import type { Blobs } from "./blobs.ts"
import { git, zero } from "./git.ts"

/** A file that git has: its blob. */
export type GitBlobs = ReadonlyMap<string, string>

/** Directories of a repository that hold what its commands change, or none. Absolute. */
export const gitDirectories = async (root: string): Promise<ReadonlyArray<string>> => {
  const found = await git(root, ["rev-parse", "--absolute-git-dir", "--path-format=absolute", "--git-common-dir"])
  if (found.code !== 0) return []
  return [
    ...new Set(
      found.stdout
        .toString("utf8")
        .split("\n")
        .filter((line) => line !== ""),
    ),
  ]
}

/** Attributes that make a blob differ from the file of the same size. */
const converting = ["filter", "ident", "working-tree-encoding"]

/** Of the given files (relative to `root`, with their sizes) those that git has, by path. */
export const gitBlobs = async (root: string, files: ReadonlyMap<string, number>): Promise<GitBlobs> => {
  const none: GitBlobs = new Map()
  const listed = await git(root, ["ls-files", "-z", "-s", "-v"])
  if (listed.code !== 0) return none
  const changed = await git(root, ["diff-files", "-z", "--name-only", "--relative", "--ignore-submodules=all"])
  if (changed.code !== 0) return none
  const dirty = new Set(zero(changed.stdout))
  const candidates = new Map<string, string>()
  for (const line of zero(listed.stdout)) {
    // `H 100644 <blob> 0<tab>path`; another letter is a file that git does not look at, a merge or a submodule.
    const match = /^H 100(?:644|755) ([0-9a-f]{40,64}) 0\t(.*)$/s.exec(line)
    const [, blob, path] = match ?? []
    if (blob !== undefined && path !== undefined && files.has(path) && !dirty.has(path)) candidates.set(path, blob)
  }
  if (candidates.size === 0) return none
  const names = `${[...candidates.keys()].join("\0")}\0`
  const attributes = await git(root, ["check-attr", "-z", "--stdin", ...converting], names)
  if (attributes.code !== 0) return none
  const triples = zero(attributes.stdout)
  for (let at = 0; at + 2 < triples.length; at += 3) {
    const [path = "", , value] = triples.slice(at, at + 3)
    if (value !== "unspecified" && value !== "unset") candidates.delete(path)
  }
  const sizes = await git(
    root,
    ["cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)"],
    `${[...new Set(candidates.values())].join("\n")}\n`,
  )
  if (sizes.code !== 0) return none
  const sizeOf = new Map<string, number>()
  for (const line of sizes.stdout.toString("utf8").split("\n")) {
    const [blob, type, size] = line.split(" ")
    if (blob !== undefined && type === "blob") sizeOf.set(blob, Number(size))
  }
  return new Map([...candidates].filter(([path, blob]) => sizeOf.get(blob) === files.get(path)))
}

/** Blobs read at once. */
const batch = 100

/** Takes blobs of git into the store; gives their hash and size by blob. What git no longer has is left out. */
export const takeBlobs = async (
  root: string,
  wanted: ReadonlyArray<string>,
  blobs: Blobs,
): Promise<ReadonlyMap<string, { readonly hash: string; readonly size: number }>> => {
  const taken = new Map<string, { readonly hash: string; readonly size: number }>()
  const unique = [...new Set(wanted)]
  for (let at = 0; at < unique.length; at += batch) {
    const { stdout } = await git(root, ["cat-file", "--batch"], `${unique.slice(at, at + batch).join("\n")}\n`)
    let offset = 0
    while (offset < stdout.length) {
      const end = stdout.indexOf(10, offset)
      if (end < 0) break
      const [blob = "", type, length] = stdout.toString("utf8", offset, end).split(" ")
      offset = end + 1
      if (type === "missing" || length === undefined) continue
      const size = Number(length)
      if (type === "blob") taken.set(blob, { hash: await blobs.put(stdout.subarray(offset, offset + size)), size })
      offset += size + 1
    }
  }
  return taken
}
