/**
 * A TypeScript program of the tests as a real process: bundled once, inside the project so that native modules are found.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import path from "node:path"
import { build } from "esbuild"

const root = path.resolve(import.meta.dirname, "../..")

export interface Program {
  /** Path of the bundle, to run with plain Node. */
  readonly file: string
  readonly remove: () => void
}

/** `entry` is a path from the root of the project. */
export const bundleProgram = async (entry: string): Promise<Program> => {
  const parent = path.join(root, "node_modules", ".cache")
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(path.join(parent, "super-pi-test-"))
  const file = path.join(directory, "program.mjs")
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile: file,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20.19",
    external: ["better-sqlite3"],
    logLevel: "warning",
    banner: {
      js: 'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);',
    },
  })
  return { file, remove: () => rmSync(directory, { recursive: true, force: true }) }
}
