/**
 * Making directories. Node's own recursive `mkdir` never returns where a file system answers ENOENT for a child of a directory that is
 * there (for example below `/proc`), so each missing directory is made by itself.
 */
import { existsSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/** Makes the directory and its missing parents (`mode` applies to those made). Throws the system's error. */
export const makeDirectories = (path: string, mode: number): void => {
  const missing: Array<string> = []
  for (let at = path; !existsSync(at) && at !== dirname(at); at = dirname(at)) missing.push(at)
  for (const directory of missing.reverse()) {
    try {
      mkdirSync(directory, { mode })
    } catch (cause) {
      // Somebody else was faster.
      if (!existsSync(directory)) throw cause
    }
  }
}
