/**
 * A TypeScript program of the tests as a real process: bundled once, inside the project so that native modules are found.
 */
import path from "node:path"
import { pathToFileURL } from "node:url"

export interface Program {
  /** Path of the bundle, to run with plain Node. */
  readonly file: string
  readonly remove: () => Promise<void>
}

const script = pathToFileURL(path.resolve(import.meta.dirname, "../../scripts/bundle.mjs")).href

/** `entry` is a path from the root of the project. */
export const bundleProgram = async (entry: string): Promise<Program> => (await import(script)).bundle(entry, "inside")
