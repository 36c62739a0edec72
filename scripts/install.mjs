/**
 * Installs what is missing, and only then. Plain Node without packages: it runs before there are any.
 *
 * Rules:
 * 1. The stamp `node_modules/.super-pi-install` names the lock file, Node's ABI and the platform that were installed; it is written last,
 *    after the native module was seen to load, so an interrupted install is done again and a finished one is not.
 * 2. Packages that somebody installed by hand count when they are those of the lock file and the native module loads.
 * 3. One install at a time: a second one waits for the first; the lock of a process that died is taken over.
 *
 * A project is a directory with a lock file: the root, whose native module must load, and `test/clients`, which only the suite needs.
 */
import { spawn, spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import path from "node:path"
import { fileURLToPath } from "node:url"

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))

const minimumNode = [20, 19]

/** How often a quiet install says that it is still at work, and how often a waiting one looks again, in milliseconds. */
const heartbeat = 15_000
const lockPoll = 500

/** A failure with one line for the person; scripts print it without a stack. */
export class Failure extends Error {}

export const checkNode = (version = process.versions.node) => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  const [needMajor, needMinor] = minimumNode
  if (major > needMajor || (major === needMajor && minor >= needMinor)) return
  throw new Failure(
    `Node.js: expected ${minimumNode.join(".")} or newer, got ${version}; see https://nodejs.org/en/download`,
  )
}

const read = (...names) => {
  try {
    return readFileSync(path.join(...names), "utf8")
  } catch {
    return null
  }
}

const stampFile = (project) => path.join(project, "node_modules", ".super-pi-install")

const wantedStamp = (project) => {
  const lock = read(project, "package-lock.json")
  if (lock === null) throw new Failure("package-lock.json is missing; get the project's files again")
  const digest = createHash("sha256").update(lock).digest("hex")
  return `${digest} abi ${process.versions.modules} ${process.platform} ${process.arch}\n`
}

/** Loads the native module in a process of its own; its error, or null. */
const nativeFault = (project) => {
  if (project !== root) return null
  const program = 'const D=require("better-sqlite3");new D(":memory:").close()'
  const result = spawnSync(process.execPath, ["-e", program], { cwd: root, encoding: "utf8" })
  if (result.status === 0) return null
  const line = (result.stderr ?? "").split("\n").find((text) => /^\w*Error\b/.test(text))
  return (line ?? String(result.error ?? `exit code ${result.status}`)).trim()
}

/** Rule 2: npm's own record of what it installed equals the lock file, optional packages aside. */
const installedByHand = (project) => {
  try {
    const wanted = JSON.parse(read(project, "package-lock.json") ?? "{}").packages
    const found = JSON.parse(read(project, "node_modules", ".package-lock.json") ?? "{}").packages
    return Object.entries(wanted).every(
      ([name, entry]) => name === "" || entry.optional === true || found[name]?.version === entry.version,
    )
  } catch {
    return false
  }
}

/** npm's command: the one that started us, or the one on the path. */
const npmCommand = () => {
  const started = process.env.npm_execpath
  if (started !== undefined && /npm-cli\.c?js$/.test(started)) return [process.execPath, started]
  return [process.platform === "win32" ? "npm.cmd" : "npm"]
}

const runNpm = (project, log) =>
  new Promise((resolve, reject) => {
    const [command, ...prefix] = npmCommand()
    // Also when npm was told to be silent: why an install fails is to be read.
    const args = [...prefix, "ci", "--include=dev", "--no-audit", "--no-fund", "--loglevel=error"]
    const child = spawn(command, args, {
      cwd: project,
      stdio: ["ignore", "pipe", "pipe"],
      shell: process.platform === "win32" && prefix.length === 0,
    })
    let tail = ""
    const started = Date.now()
    const tick = setInterval(() => log(`still installing, ${Math.round((Date.now() - started) / 1000)} s`), heartbeat)
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        process.stderr.write(chunk)
        tail = (tail + chunk).slice(-16_384)
      })
    }
    child.on("error", (error) => {
      clearInterval(tick)
      reject(new Failure(`npm could not be started (${error.message}); it comes with Node.js`))
    })
    child.on("close", (code, signal) => {
      clearInterval(tick)
      resolve({ code, signal, tail })
    })
  })

const explain = (project, { code, signal, tail }) => {
  const again = "then run the same command again"
  if (signal !== null) return `the install was interrupted (${signal}); run the same command again`
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH/.test(tail)) {
    return `npm did not reach the package registry; check the network or \`npm config get registry\`, ${again}`
  }
  if (/gyp ERR.*network/.test(tail)) {
    return `better-sqlite3 has no binary here, and node-gyp did not reach nodejs.org for what it compiles with; check the network or proxy, ${again}`
  }
  if (/gyp ERR|node-gyp/.test(tail)) {
    return `the database driver better-sqlite3 did not compile; install python3, make and a C++ compiler, ${again}`
  }
  if (/ENOSPC/.test(tail)) return `the disk is full; make room, ${again}`
  if (/EACCES|EPERM/.test(tail))
    return `npm may not write to ${path.join(project, "node_modules")}; check its owner, ${again}`
  return `npm ci ended with code ${code}; its message is above`
}

const alive = (pid) => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return error.code === "EPERM"
  }
}

const lockOf = (project) => path.join(project, ".install.lock")

/** A lock without a process number after this long, in milliseconds, was left by a process that died between taking and naming it. */
const nameless = 10_000

const lockAge = (lock) => {
  try {
    return Date.now() - statSync(lock).mtimeMs
  } catch {
    return 0
  }
}

/** Rule 3. */
const withLock = async (project, log, work) => {
  const lockDirectory = lockOf(project)
  let told = false
  for (;;) {
    try {
      mkdirSync(lockDirectory)
      break
    } catch (error) {
      if (error.code !== "EEXIST") throw new Failure(`${project} is not writable (${error.code})`)
    }
    const holder = Number(read(lockDirectory, "pid") ?? 0)
    if (holder > 0 ? !alive(holder) : lockAge(lockDirectory) > nameless) {
      rmSync(lockDirectory, { recursive: true, force: true })
      continue
    }
    if (!told) log(`another install is running${holder > 0 ? ` (process ${holder})` : ""}; waiting for it`)
    told = true
    await new Promise((resolve) => setTimeout(resolve, lockPoll))
  }
  try {
    writeFileSync(path.join(lockDirectory, "pid"), String(process.pid))
    return await work()
  } finally {
    rmSync(lockDirectory, { recursive: true, force: true })
  }
}

const isInstalled = (project, stamp) => read(stampFile(project)) === stamp

/** What only the suite needs. */
export const clients = path.join(root, "test", "clients")

/** Resolves to whether anything was installed; fails with a {@link Failure} that says what to do. */
export const ensureInstalled = async (log, project = root) => {
  checkNode()
  const stamp = wantedStamp(project)
  if (isInstalled(project, stamp)) return false
  return await withLock(project, log, async () => {
    if (isInstalled(project, stamp)) return false
    if (installedByHand(project) && nativeFault(project) === null) {
      writeFileSync(stampFile(project), stamp)
      return false
    }
    const what = project === root ? "packages" : "the programs that the suite drives"
    log(`installing ${what}; this takes one to three minutes, once`)
    const outcome = await runNpm(project, log)
    if (outcome.code !== 0) throw new Failure(explain(project, outcome))
    const fault = nativeFault(project)
    if (fault !== null) {
      throw new Failure(
        `better-sqlite3 does not load (${fault}); run \`npm rebuild better-sqlite3 --ignore-scripts=false\``,
      )
    }
    writeFileSync(stampFile(project), stamp)
    return true
  })
}

/** Runs a script's body: one line and exit code 1 for a failure, the stack only for what nobody foresaw. */
export const main = async (name, body) => {
  try {
    process.exitCode = await body()
  } catch (error) {
    console.error(error instanceof Failure ? `${name}: ${error.message}` : error)
    process.exitCode = 1
  }
}

/** Runs a child on our terminal and gives its exit code; signals that we get go to it. */
export const runChild = (command, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: "inherit", ...options })
    // The terminal sends Ctrl-C to the child as well; we only must not end before it.
    const ignore = () => {}
    const forward = () => child.kill("SIGTERM")
    process.on("SIGINT", ignore)
    process.on("SIGTERM", forward)
    child.on("error", reject)
    child.on("close", (code, signal) => {
      process.off("SIGINT", ignore)
      process.off("SIGTERM", forward)
      resolve(code ?? (signal === "SIGINT" ? 130 : signal === "SIGTERM" ? 143 : 1))
    })
  })

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const log = (line) => console.error(`super-pi: ${line}`)
  await main("super-pi", async () => {
    if (!(await ensureInstalled(log))) log("packages are up to date")
    return 0
  })
}
