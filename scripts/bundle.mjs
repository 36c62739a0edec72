/**
 * Bundles a TypeScript program of ours (the stress run, a bench, a child process of a test) into a temporary directory inside the project, so
 * that packages are found from there, and removes it afterwards.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import path from "node:path"
import { root } from "./install.mjs"

/** Calls `use` with the path of the bundle; packages stay outside of it. */
export const withBundle = async (entry, use) => {
  const { build } = await import("esbuild")
  const parent = path.join(root, "node_modules", ".cache")
  await mkdir(parent, { recursive: true })
  const directory = await mkdtemp(path.join(parent, "super-pi-"))
  const outfile = path.join(directory, "program.mjs")
  try {
    await build({
      absWorkingDir: root,
      entryPoints: [entry],
      outfile,
      bundle: true,
      format: "esm",
      platform: "node",
      target: "node20.19",
      packages: "external",
      sourcemap: "inline",
      logLevel: "warning",
    })
    return await use(outfile)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}
