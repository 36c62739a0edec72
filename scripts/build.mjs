/**
 * Builds `dist/` from `src/`: the programs (command line, node, sandbox worker) bundled with their packages for a fast start, the library
 * entries with every package left external (an embedding application must share its own `effect`), and declarations beside them.
 *
 * Rules:
 * 1. Nobody ever sees a half-built `dist`: everything is built in a directory of its own, chunks (named by content) are moved in first and
 *    the entries, each by one rename, last. A process that started from the former entries still finds its chunks for an hour.
 * 2. The stamp `dist/build.json` is written last; `build({ ifChanged: true })` does nothing while it names the present sources.
 * 3. What all commands share, which is nearly everything, is one file in `chunks` that the entries load (`src/cli/load-program.ts`). After a
 *    build it is run once, so that its compiled code lies beside it.
 */
import { isAscii } from "node:buffer"
import { spawn } from "node:child_process"
import { createHash } from "node:crypto"

import { existsSync } from "node:fs"
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import path from "node:path"
import { fileURLToPath } from "node:url"
import { cjsNames } from "./cjs-names.mjs"

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

/** What the entries `cli` and `node` load. */
const shared = { program: "src/cli/program.ts" }

/** Programs: everything bundled but native modules. Those that do not exist are left out. */
const programs = { cli: "src/cli.ts", node: "src/node.ts", "sandbox-worker": "src/tools/sandbox-worker.ts" }

/** Library entries, the `exports` of package.json. */
const libraries = { index: "src/index.ts", nact: "src/nact.ts", testing: "src/testing.ts" }

/** Native modules and those that look for native modules at run time. */
const native = ["better-sqlite3", "msgpackr-extract"]

/** Packages written for CommonJS call `require` for Node's own modules; a bundle in ESM has none. */
const requireShim =
  'import { createRequire as __createRequire } from "node:module"; const require = __createRequire(import.meta.url);'

/** Chunks of earlier builds stay this long for processes that still run from them, in milliseconds. */
const chunkLifetime = 3_600_000

/** Directories inside `dist` in which builds are at work; on the same file system, so that a rename is enough. */
const workPrefix = ".building-"

const filesUnder = async (directory) => {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath ?? entry.path, entry.name))
}

/** A hash over everything that decides what the build produces. */
const sourceStamp = async () => {
  const files = [
    ...(await filesUnder(path.join(root, "src"))),
    ...[
      "package.json",
      "package-lock.json",
      "tsconfig.json",
      "tsconfig.build.json",
      "scripts/build.mjs",
      "scripts/cjs-names.mjs",
    ].map((name) => path.join(root, name)),
  ].sort()
  const hash = createHash("sha256")
  for (const file of files) {
    hash.update(path.relative(root, file)).update("\0")
    hash.update(await readFile(file)).update("\0")
  }
  return hash.digest("hex")
}

const readStamp = async (dist) => {
  try {
    return JSON.parse(await readFile(path.join(dist, "build.json"), "utf8"))
  } catch {
    return null
  }
}

const present = (entries) =>
  Object.fromEntries(Object.entries(entries).filter(([, file]) => existsSync(path.join(root, file))))

/** Of a bundle whose strings and names are escaped, only comments hold other characters; whether that is so is looked at. */
const makeAscii = async (esbuild, file) => {
  const text = await readFile(file, "utf8")
  const { code } = await esbuild.transform(text, { charset: "ascii", legalComments: "none", minifyWhitespace: true })
  if (!isAscii(Buffer.from(code))) throw new Error(`${file}: expected ASCII outside of comments`)
  await writeFile(file, text.replace(/[^\0-\x7f]/g, "?"))
}

/** The value of each, once all have ended; throws what the first of them that failed threw. */
const settled = async (promises) => {
  const results = await Promise.allSettled(promises)
  const failed = results.find(({ status }) => status === "rejected")
  if (failed !== undefined) throw failed.reason
  return results.map(({ value }) => value)
}

const bundle = (esbuild, outdir, version) => {
  const define = { "process.env.SUPER_PI_VERSION": JSON.stringify(version) }
  const common = {
    absWorkingDir: root,
    bundle: true,
    platform: "node",
    target: "node20.19",
    outdir,
    sourcemap: "linked",
    sourcesContent: false,
    logLevel: "warning",
    metafile: true,
    plugins: [cjsNames],
    define,
  }
  const split = { ...common, format: "esm", splitting: true, chunkNames: "chunks/[name]-[hash]" }
  /** A function, as the entries call it, in ASCII. */
  const whole = {
    ...common,
    format: "cjs",
    define: { ...define, "import.meta.url": "__programUrl" },
    supported: { "dynamic-import": false },
    charset: "ascii",
    legalComments: "external",
    banner: { js: "(function (exports, require, module, __filename, __dirname, __programUrl) {" },
    footer: { js: "})" },
    entryNames: "chunks/[name]-[hash]",
    outExtension: { ".js": ".cjs" },
    external: native,
  }
  const runnable = async () => {
    const { metafile } = await esbuild.build({ ...whole, entryPoints: present(shared) })
    const program = Object.keys(metafile.outputs).find((file) => file.endsWith(".cjs")) ?? ""
    if (program !== "") await makeAscii(esbuild, path.join(root, program))
    const entries = await esbuild.build({
      ...split,
      define: { ...define, "process.env.SUPER_PI_PROGRAM": JSON.stringify(path.basename(program)) },
      entryPoints: present(programs),
      external: native,
      banner: { js: requireShim },
    })
    return { ...metafile.outputs, ...entries.metafile.outputs }
  }
  const library = async () => {
    const { metafile } = await esbuild.build({ ...split, entryPoints: present(libraries), packages: "external" })
    return metafile.outputs
  }
  return settled([runnable(), library()])
}

/** Runs the compiler for declarations; resolves to its messages, or null when there were none. */
const declare = (outdir) =>
  new Promise((resolve, reject) => {
    const compiler = path.join(root, "node_modules", "typescript", "bin", "tsc")
    const child = spawn(process.execPath, [compiler, "-p", "tsconfig.build.json", "--outDir", outdir], {
      cwd: root,
      stdio: ["ignore", "pipe", "pipe"],
    })
    let output = ""
    child.stdout.on("data", (chunk) => {
      output += chunk
    })
    child.stderr.on("data", (chunk) => {
      output += chunk
    })
    child.on("error", reject)
    child.on("close", (code) => resolve(code === 0 ? null : output.trim() || `tsc ended with code ${code}`))
  })

const isEntry = (file) => !file.includes(path.sep) && file.endsWith(".js")

/** Moves a finished tree into `dist` (rule 1). */
const publish = async (from, dist) => {
  const files = (await filesUnder(from)).map((file) => path.relative(from, file))
  for (const directory of new Set(files.map((file) => path.dirname(file)))) {
    await mkdir(path.join(dist, directory), { recursive: true })
  }
  const ordered = [...files.filter((file) => !isEntry(file)), ...files.filter(isEntry)]
  for (const file of ordered) await rename(path.join(from, file), path.join(dist, file))
  return new Set(files)
}

const compiledCode = /^(.*\.cjs)\.[0-9a-f]+\.cache$/

/** Removes what is not `current`: leftovers at once, chunks and the work directories of killed builds after their lifetime. */
const prune = async (dist, current) => {
  const before = Date.now() - chunkLifetime
  const modified = async (file) => (await stat(file).catch(() => null))?.mtimeMs ?? 0
  for (const entry of await readdir(dist)) {
    const stale = entry.startsWith(workPrefix) && (await modified(path.join(dist, entry))) < before
    if (stale) await rm(path.join(dist, entry), { recursive: true, force: true })
  }
  for (const file of await filesUnder(dist)) {
    const name = path.relative(dist, file)
    const [, program = name] = compiledCode.exec(name) ?? []
    if (current.has(program) || name === "build.json" || name.startsWith(workPrefix)) continue
    if (!name.startsWith(`chunks${path.sep}`) || (await modified(file)) < before) await rm(file, { force: true })
  }
}

/**
 * Runs the program once, with the model that only echoes and in a directory of its own, so that the next start finds it compiled. That it
 * cannot be run here (no native modules, where an image is built in stages) is no fault of the build: its first run does the same then.
 */
const warm = async (dist) => {
  const directory = await mkdtemp(path.join(tmpdir(), "super-pi-warm-"))
  const args = [path.join(dist, "cli.js"), "run", "--model", "mock/echo", "hello"]
  const env = { PATH: process.env.PATH ?? "", HOME: directory, USERPROFILE: directory, SUPER_PI_DATA_DIR: directory }
  const program = spawn(process.execPath, args, { cwd: directory, env, stdio: "ignore", timeout: 60_000 })
  await new Promise((done) => program.on("error", done).on("close", done))
  await rm(directory, { recursive: true, force: true })
}

/**
 * Builds. `ifChanged` skips a build of the same sources; `requireTypes: false` reports type errors without failing, for commands that only
 * want to run the program. Resolves to whether anything was built.
 */
export const build = async ({ ifChanged = false, requireTypes = true, log = () => {} } = {}) => {
  const dist = path.join(root, "dist")
  const sources = await sourceStamp()
  const stamp = await readStamp(dist)
  if (ifChanged && stamp?.sources === sources) return false
  const started = Date.now()
  const { version } = JSON.parse(await readFile(path.join(root, "package.json"), "utf8"))
  const esbuild = await import("esbuild")
  await mkdir(dist, { recursive: true })
  const temporary = await mkdtemp(path.join(dist, workPrefix))
  try {
    // Both have ended before the directory goes, whatever came of them.
    const [outputs, typeErrors] = await settled([
      bundle(esbuild, temporary, version),
      declare(path.join(temporary, "types")).catch(String),
    ])
    if (typeErrors !== null && requireTypes) throw new Error(`declarations failed:\n${typeErrors}`)
    if (typeErrors !== null) log(`declarations have type errors (npm run typecheck shows them)`)
    await prune(dist, await publish(temporary, dist))
    if (typeErrors === null) {
      const text = JSON.stringify({ version, sources, builtAt: new Date().toISOString() })
      await writeFile(path.join(temporary, "build.json"), `${text}\n`)
      await rename(path.join(temporary, "build.json"), path.join(dist, "build.json"))
    }
    if (existsSync(path.join(root, shared.program))) await warm(dist)
    const programsAndLibrary = outputs.flatMap(Object.entries).filter(([name]) => /\.c?js$/.test(name))
    const size = programsAndLibrary.reduce((sum, [, output]) => sum + output.bytes, 0)
    log(
      `built dist in ${((Date.now() - started) / 1000).toFixed(1)} s (${(size / 1_048_576).toFixed(1)} MiB of JavaScript)`,
    )
    return true
  } finally {
    await rm(temporary, { recursive: true, force: true })
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const built = await build({ ifChanged: process.argv.includes("--if-changed"), log: (line) => console.log(line) })
    if (!built) console.log("dist is up to date")
  } catch (error) {
    console.error(`super-pi build: ${error instanceof Error ? error.message : error}`)
    process.exitCode = 1
  }
}
