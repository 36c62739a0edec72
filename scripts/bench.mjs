/**
 * Runs benches: bundles `bench/<name>/main.ts` with esbuild to a temporary folder and runs each with plain node, one after another.
 *
 *   node scripts/bench.mjs                every bench
 *   node scripts/bench.mjs actors ask     one bench; further words are handed to it
 *
 * Exit code 1 when a target was missed or a bench failed.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build } from "esbuild"

const root = fileURLToPath(new URL("..", import.meta.url))
const [only, ...words] = process.argv.slice(2)
const all = readdirSync(join(root, "bench")).filter((name) => existsSync(join(root, "bench", name, "main.ts")))
if (only !== undefined && !all.includes(only)) {
  console.error(`bench: expected one of ${all.join(", ")}, got ${JSON.stringify(only)}`)
  process.exit(2)
}

const out = mkdtempSync(join(tmpdir(), "super-pi-bench-"))
try {
  // Packages stay outside of the bundle, as in production; they are found through this link.
  symlinkSync(join(root, "node_modules"), join(out, "node_modules"), "junction")
  for (const name of only === undefined ? all : [only]) {
    const file = join(out, `${name}.mjs`)
    await build({
      entryPoints: [join(root, "bench", name, "main.ts")],
      outfile: file,
      bundle: true,
      platform: "node",
      format: "esm",
      target: "node20",
      packages: "external",
      logLevel: "warning",
    })
    const { status } = spawnSync(process.execPath, ["--expose-gc", file, ...words], { cwd: root, stdio: "inherit" })
    if (status !== 0) process.exitCode = 1
  }
} finally {
  rmSync(out, { recursive: true, force: true })
}
