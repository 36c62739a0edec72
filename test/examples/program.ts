/**
 * A program that imports `super-pi` as a file that plain Node runs: the library's sources take the package's place, packages stay outside.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join, resolve } from "node:path"
import { build } from "esbuild"

const root = resolve(import.meta.dirname, "../..")

export interface Example {
  readonly file: string
  readonly remove: () => void
}

const bundle = async (entry: { readonly file: string } | { readonly code: string }): Promise<Example> => {
  // Inside the project, so that its packages are found.
  const parent = join(root, "node_modules", ".cache")
  mkdirSync(parent, { recursive: true })
  const directory = mkdtempSync(join(parent, "example-"))
  const source = "file" in entry ? join(root, entry.file) : join(directory, "snippet.ts")
  if ("code" in entry) writeFileSync(source, entry.code)
  const file = join(directory, "program.mjs")
  await build({
    entryPoints: [source],
    outfile: file,
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    logLevel: "silent",
    alias: { "super-pi": join(root, "src/index.ts"), "super-pi/testing": join(root, "src/testing.ts") },
    packages: "external",
  })
  return { file, remove: () => rmSync(dirname(file), { recursive: true, force: true }) }
}

/** `file` is a path from the root of the project. */
export const exampleProgram = (file: string): Promise<Example> => bundle({ file })

/** A program from the documentation. */
export const snippetProgram = (code: string): Promise<Example> => bundle({ code })
