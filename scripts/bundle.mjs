/**
 * Bundles a TypeScript program of ours (the stress run, a bench, a child process of a test) into a temporary directory inside the project, so
 * that packages are found from there. Beside it lies the program of the sandbox threads, where the built program looks for it too.
 */
import { mkdir, mkdtemp, rm } from "node:fs/promises"
import path from "node:path"
import { cjsNames } from "./cjs-names.mjs"
import { root } from "./install.mjs"

/** Packages written for CommonJS call `require` for Node's own modules; a bundle in ESM has none. */
const requireShim =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);'

/** What becomes of packages: they stay `outside`, or go `inside` but for native ones, for a program that is started many times. */
const packaging = {
  outside: { packages: "external", sourcemap: "inline" },
  inside: { external: ["better-sqlite3"], banner: { js: requireShim }, plugins: [cjsNames] },
}

/** Bundles `entry`, a path from the root of the project. Resolves to the bundle's path and to what removes it. */
export const bundle = async (entry, packages = "outside") => {
  const { build } = await import("esbuild")
  const parent = path.join(root, "node_modules", ".cache")
  await mkdir(parent, { recursive: true })
  const directory = await mkdtemp(path.join(parent, "super-pi-"))
  const remove = () => rm(directory, { recursive: true, force: true })
  const common = { absWorkingDir: root, bundle: true, platform: "node", target: "node20.19", logLevel: "warning" }
  const file = path.join(directory, "program.mjs")
  const worker = path.join(directory, "sandbox-worker.js")
  try {
    await Promise.all([
      build({ ...common, entryPoints: [entry], outfile: file, format: "esm", ...packaging[packages] }),
      // No package.json says how to read a `.js` file there, so it is CommonJS.
      build({ ...common, entryPoints: ["src/tools/sandbox-worker.ts"], outfile: worker, format: "cjs" }),
    ])
    return { file, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

/** Calls `use` with the path of the bundle, and removes it afterwards. */
export const withBundle = async (entry, use) => {
  const { file, remove } = await bundle(entry)
  try {
    return await use(file)
  } finally {
    await remove()
  }
}
