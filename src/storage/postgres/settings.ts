/**
 * How this node reaches its PostgreSQL, read from the environment. Pure: certificates are read by whoever connects (`client-config.ts`).
 * A fault names the variable and what was expected, and never shows a password.
 */
import { Either, Redacted } from "effect"
import { InvalidSetting } from "../../domain/invalid-setting.ts"
import { shown } from "../../domain/shown.ts"
import { type DatabaseUrl, parseDatabaseUrl, urlShape } from "./url.ts"

const tlsModes = ["disable", "require", "verify-ca", "verify-full"] as const

/** `require` encrypts and checks nothing; `verify-ca` checks who signed the certificate; `verify-full` the name in it as well. */
export type TlsMode = (typeof tlsModes)[number]

export interface PostgresTls {
  readonly mode: TlsMode
  /** Path of a PEM file; null: the authorities of this system. */
  readonly ca: string | null
  /** The name that the certificate must have, and that the server is asked for; null: the host. */
  readonly serverName: string | null
  /** Paths of PEM files, for servers that ask who comes. Both or none. */
  readonly cert: string | null
  readonly key: string | null
}

export interface PostgresSettings {
  /** A host name, an address, or the directory of a unix socket (it begins with `/`). */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  /** Null: `PGPASSWORD` or `~/.pgpass`, or the server asks for none. */
  readonly password: Redacted.Redacted<string> | null
  /** Settings of each session, as in `-c search_path=app`. */
  readonly options: string | null
  readonly tls: PostgresTls
  /** Connections that reads share, per node. The writer and the locks have one each beside them. */
  readonly poolSize: number
  /** Milliseconds that a read waits for a connection when all is well. */
  readonly queueTargetMs: number
  /** Milliseconds over which waits are judged: see `pool.ts`. */
  readonly queueIntervalMs: number
  /** Connects over IPv6 only. */
  readonly ipv6: boolean
  /** Whether a node that opens the database applies the migrations that are pending. */
  readonly autoMigrate: boolean
}

type Env = Readonly<Record<string, string | undefined>>
type Read<A> = Either.Either<A, InvalidSetting>

const invalid = (variable: string, expected: string, got: string): Read<never> =>
  Either.left(new InvalidSetting({ variable, expected, got }))

/** The variable as it counts: an empty one is none. */
const text = (env: Env, variable: string): string | null => env[variable]?.trim() || null

const wholeNumber = (env: Env, variable: string, otherwise: number, [min, max]: [number, number], what: string) => {
  const value = text(env, variable)
  if (value === null) return Either.right(otherwise)
  const parsed = /^\d{1,9}$/.test(value) ? Number(value) : Number.NaN
  return parsed >= min && parsed <= max
    ? Either.right(parsed)
    : invalid(variable, `${what} from ${min} to ${max}`, shown(value))
}

const flag = (env: Env, variable: string, otherwise: boolean): Read<boolean> => {
  const value = text(env, variable)
  if (value === null) return Either.right(otherwise)
  if (/^(false|0|no)$/i.test(value)) return Either.right(false)
  return /^(true|1|yes)$/i.test(value) ? Either.right(true) : invalid(variable, "true or false", shown(value))
}

const tlsMode = (env: Env, url: DatabaseUrl): Read<TlsMode> => {
  const own = text(env, "SUPER_PI_DB_SSL")
  const value = own ?? url.sslMode ?? "disable"
  const mode = tlsModes.find((one) => one === value)
  if (mode !== undefined) return Either.right(mode)
  const variable = own === null ? "sslmode in DATABASE_URL" : "SUPER_PI_DB_SSL"
  return invalid(variable, `one of ${tlsModes.join(", ")}`, shown(value))
}

const tlsOf = (env: Env, url: DatabaseUrl): Read<PostgresTls> =>
  Either.gen(function* () {
    const mode = yield* tlsMode(env, url)
    if (mode !== "disable" && url.host.startsWith("/")) {
      return yield* invalid("SUPER_PI_DB_SSL", "disable for a unix socket", shown(mode))
    }
    const cert = text(env, "SUPER_PI_DB_SSL_CERT") ?? url.sslCert
    const key = text(env, "SUPER_PI_DB_SSL_KEY") ?? url.sslKey
    const missing = cert === null ? "CERT" : "KEY"
    if ((cert === null) !== (key === null)) {
      return yield* invalid(`SUPER_PI_DB_SSL_${missing}`, "a path, since the other half of it is given", "nothing")
    }
    const serverName = text(env, "SUPER_PI_DB_SSL_SNI")
    if (serverName !== null && !/^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$/.test(serverName)) {
      return yield* invalid("SUPER_PI_DB_SSL_SNI", "a host name", shown(serverName))
    }
    return { mode, ca: text(env, "SUPER_PI_DB_SSL_CA") ?? url.sslCa, serverName, cert, key }
  })

/** What the environment says about the database; the first variable that is wrong. */
export const postgresSettings = (env: Env): Either.Either<PostgresSettings, InvalidSetting> =>
  Either.gen(function* () {
    const given = text(env, "DATABASE_URL")
    if (given === null) return yield* invalid("DATABASE_URL", `a URL like ${urlShape}`, "nothing")
    const url = yield* Either.mapLeft(
      parseDatabaseUrl(given),
      (fault) => new InvalidSetting({ variable: "DATABASE_URL", ...fault }),
    )
    return {
      host: url.host,
      port: url.port,
      database: url.database,
      user: url.user,
      password: url.password === null ? null : Redacted.make(url.password),
      options: url.options,
      tls: yield* tlsOf(env, url),
      poolSize: yield* wholeNumber(env, "POOL_SIZE", 10, [1, 1_000], "connections"),
      queueTargetMs: yield* wholeNumber(env, "SUPER_PI_DB_QUEUE_TARGET", 50, [1, 60_000], "milliseconds"),
      queueIntervalMs: yield* wholeNumber(env, "SUPER_PI_DB_QUEUE_INTERVAL", 1_000, [10, 600_000], "milliseconds"),
      ipv6: yield* flag(env, "SUPER_PI_DB_IPV6", false),
      // many nodes of a production start at once, and its schema changes in a step of its own
      autoMigrate: yield* flag(env, "SUPER_PI_AUTO_MIGRATE", text(env, "NODE_ENV") !== "production"),
    }
  })

/** Settings for a URL, for programs that embed this one; what it leaves out is as in {@link postgresSettings}. */
export const settingsOfUrl = (url: string): Either.Either<PostgresSettings, InvalidSetting> =>
  postgresSettings({ DATABASE_URL: url })

const backends = ["sqlite", "postgres"]

/** The server that the environment names, or null: SUPER_PI_STORAGE_BACKEND is `sqlite`, as it is where nothing is said. */
export const serverSettings = (env: Env): Either.Either<PostgresSettings | null, InvalidSetting> => {
  const backend = text(env, "SUPER_PI_STORAGE_BACKEND") ?? "sqlite"
  if (backend === "postgres") return postgresSettings(env)
  return backends.includes(backend)
    ? Either.right(null)
    : invalid("SUPER_PI_STORAGE_BACKEND", backends.join(" or "), shown(backend))
}

/** The database as a URL without secrets, for messages. */
export const locationOf = ({ database, host, port, user }: PostgresSettings): string => {
  const name = encodeURIComponent(database)
  if (host.startsWith("/")) return `postgresql://${encodeURIComponent(user)}@/${name}?host=${host}`
  return `postgresql://${encodeURIComponent(user)}@${host.includes(":") ? `[${host}]` : host}:${port}/${name}`
}
