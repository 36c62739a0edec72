/**
 * Whether a path is at or below another. Both absolute and without links. Pure.
 */
import { sep } from "node:path"

/** Whether `path` is `root` or below it. */
export const isInside = (root: string, path: string): boolean =>
  path === root || path.startsWith(root.endsWith(sep) ? root : root + sep)
