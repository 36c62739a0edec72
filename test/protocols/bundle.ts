/** Bundles a program of `programs/` into a temporary directory, for tests that need real processes. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

/** Answers the path of the bundled program. */
export const bundle = async (program: string): Promise<string> => {
  const outfile = join(mkdtempSync(join(tmpdir(), "sp-program-")), `${program}.mjs`)
  await build({
    entryPoints: [fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    outfile,
    logLevel: "error",
    // CommonJS packages in the bundle ask for Node's own modules by `require`.
    banner: {
      js: 'import { createRequire as makeRequire } from "node:module"; const require = makeRequire(import.meta.url);',
    },
  })
  return outfile
}
