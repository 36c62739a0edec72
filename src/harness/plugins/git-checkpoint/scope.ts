/**
 * What is watched: limits, directories that are not looked into, and what is the node's own.
 */
import { sep } from "node:path"
import type { ScanLimits } from "./scan.ts"
import { defaultSkip } from "./walk.ts"

export const defaultLimits: ScanLimits = {
  maxEntries: 50_000,
  maxFileBytes: 16 * 1024 * 1024,
  maxBytes: 256 * 1024 * 1024,
}

export const skipOf = (more: ReadonlyArray<string>): ReadonlySet<string> => new Set([...defaultSkip, ...more])

/** The database with the files beside it, and the data directory. */
export const ownPaths = (database: string, dataDir: string | null): ReadonlyArray<string> => [
  ...(database.startsWith(sep) ? [database] : []),
  ...(dataDir === null ? [] : [dataDir.endsWith(sep) ? dataDir : `${dataDir}${sep}`]),
]

/** Where the contents of a node are kept. */
export const storeDirectory = (dataDir: string): string => `${dataDir}${sep}checkpoints`
