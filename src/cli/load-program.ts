/**
 * Loads the program: a build has all commands in one file, beside which lies what V8 compiled of it the last time. Versions of Node.js before
 * 22 keep no such cache themselves, and to compile what one command needs takes them as long as everything else of its start.
 *
 * Rules:
 * 1. A file of compiled code is named by the content of the program and by the version and the flags of V8. V8 refuses what is not its own;
 *    then the program is compiled, and replaces it when it leaves.
 * 2. It lies beside the program, or in a directory of the user's cache where that may not be written. What belongs to another user than this
 *    one or the program's is not taken: it would be run.
 * 3. Nobody sees half a file, and no failure to read or write one is a failure of the command. V8 checks no more than the length: code that
 *    was damaged, as by a power failure, would end the process at its every start. So a digest stands behind it.
 */
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { homedir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { cachedDataVersionTag } from "node:v8"
import { Script } from "node:vm"
import { conventionalPlace } from "./convention.ts"

/** What the file of a program is: a function of what a module of CommonJS is given, and of its own URL. */
type Wrapper = (
  exports: object,
  require: NodeJS.Require,
  module: { exports: object },
  file: string,
  directory: string,
  url: string,
) => void

interface LoadedProgram {
  readonly exports: object
  /** Whether compiled code was found and taken. */
  readonly fromCache: boolean
  /** Writes the compiled code of what has run so far into the first of the directories that takes it. */
  readonly keep: () => void
}

/** Null where it fails: rule 3. */
const attempt = <A>(work: () => A): A | null => {
  try {
    return work()
  } catch {
    return null
  }
}

const digestOf = (data: Buffer): Buffer => createHash("sha1").update(data).digest()
const digestSize = 20

const readCache = (file: string, program: string): Buffer | null =>
  attempt(() => {
    const trusted = [process.getuid?.() ?? 0, statSync(program).uid]
    if (!trusted.includes(statSync(file).uid)) return null
    const whole = readFileSync(file)
    const data = whole.subarray(0, -digestSize)
    return digestOf(data).equals(whole.subarray(-digestSize)) ? data : null
  })

const writeCache = (file: string, data: Buffer): boolean => {
  const temporary = `${file}.${process.pid}`
  const written = attempt(() => {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, Buffer.concat([data, digestOf(data)]))
    renameSync(temporary, file)
    return true
  })
  if (written === null) attempt(() => rmSync(temporary, { force: true }))
  return written ?? false
}

/**
 * Runs the program of `file`, an absolute path; it holds ASCII only. Its compiled code is looked for in `directories`, in that order. Throws
 * what the program throws.
 */
export const loadFile = (file: string, directories: ReadonlyArray<string>): LoadedProgram => {
  const name = `${basename(file)}.${cachedDataVersionTag().toString(16)}.cache`
  const caches = directories.map((directory) => join(directory, name))
  let cachedData: Buffer | null = null
  for (const cache of caches) cachedData ??= readCache(cache, file)
  // One byte a character is read three times as fast as UTF-8.
  const script = new Script(readFileSync(file, "latin1"), { filename: file, cachedData: cachedData ?? undefined })
  const run = script.runInThisContext() as Wrapper
  const module = { exports: {} }
  run(module.exports, createRequire(file), module, file, dirname(file), pathToFileURL(file).href)
  return {
    exports: module.exports,
    fromCache: cachedData !== null && script.cachedDataRejected === false,
    keep: () => {
      const data = script.createCachedData()
      caches.some((cache) => writeCache(cache, data))
    },
  }
}

/** A command that is over sooner, such as one that prints its help, has compiled too little to be worth keeping, in milliseconds. */
const worthKeepingMs = 400

/** Loads the program of this build, and keeps its compiled code at the end of the process where there was none. */
export const loadProgram = (): typeof import("./program.ts") => {
  // The name is the build's. This module may lie beside its directory, or in it.
  const name = process.env.SUPER_PI_PROGRAM ?? ""
  const here = dirname(fileURLToPath(import.meta.url))
  const file = join(basename(here) === "chunks" ? here : join(here, "chunks"), name)
  const userCache = conventionalPlace({ env: process.env, home: homedir(), platform: process.platform }, "cache")
  const { exports, fromCache, keep } = loadFile(file, [dirname(file), userCache])
  if (!fromCache) {
    process.once("exit", () => {
      if (performance.now() > worthKeepingMs) keep()
    })
  }
  return exports as typeof import("./program.ts")
}
