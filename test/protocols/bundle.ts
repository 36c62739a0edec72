/** Bundles a program of `programs/` into a temporary directory, for tests that need real processes. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

/** What a bundled program needs in its environment to find packages with native code. */
export const programEnv = { NODE_PATH: fileURLToPath(new URL("../../node_modules", import.meta.url)) }

/** Answers the path of the bundled program. */
export const bundle = async (program: string): Promise<string> => {
  const outfile = join(mkdtempSync(join(tmpdir(), "sp-program-")), `${program}.cjs`)
  await build({
    entryPoints: [fileURLToPath(new URL(`programs/${program}.ts`, import.meta.url))],
    bundle: true,
    platform: "node",
    // CommonJS, so that NODE_PATH finds the packages with native code.
    format: "cjs",
    target: "node20",
    external: ["better-sqlite3"],
    supported: { "dynamic-import": false },
    outfile,
    logLevel: "error",
  })
  return outfile
}
