/**
 * The configuration of one connection, for the pool and for whoever needs a connection of their own (writer, locks). Certificates are read
 * each time, so that renewed ones are taken at the next connection.
 */
import { existsSync, readFileSync } from "node:fs"
import { isIP, Socket } from "node:net"
import { type ConnectionOptions, checkServerIdentity, rootCertificates } from "node:tls"
import { Redacted } from "effect"
import { type ClientConfig, types } from "pg"
import { errorCode } from "../../domain/error-code.ts"
import { StorageUnavailable } from "../errors.ts"
import { locationOf, type PostgresSettings, type PostgresTls } from "./settings.ts"

/** Milliseconds for the connection and its handshakes. */
const connectTimeoutMs = 10_000
/** Milliseconds of silence after which the system asks whether the other side is still there. */
const keepAliveAfterMs = 10_000

/** Oid of `bigint`: ids, times and counts, all of them exact as numbers. */
const int8 = 20

const numbers: NonNullable<ClientConfig["types"]> = {
  getTypeParser: (oid, format) => (oid === int8 && format !== "binary" ? Number : types.getTypeParser(oid, format)),
}

/** Where systems keep the authorities that they trust. */
const systemStores = [
  "/etc/ssl/certs/ca-certificates.crt",
  "/etc/pki/tls/certs/ca-bundle.crt",
  "/etc/ssl/ca-bundle.pem",
  "/etc/ssl/cert.pem",
]

const readPem = (settings: PostgresSettings, variable: string, path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch (cause) {
    throw new StorageUnavailable({
      location: locationOf(settings),
      cause: `${path} cannot be read (${errorCode(cause) || String(cause)})`,
      advice: `Check ${variable}`,
    })
  }
}

/** The authorities of this system and those that Node.js brings. */
const systemAuthorities = (): ConnectionOptions["ca"] => {
  const store = [process.env.SSL_CERT_FILE ?? "", ...systemStores].find((path) => path !== "" && existsSync(path))
  return store === undefined ? undefined : [...rootCertificates, readFileSync(store, "utf8")]
}

const checks = (settings: PostgresSettings, { ca, mode, serverName }: PostgresTls): ConnectionOptions => {
  if (mode === "require") return { rejectUnauthorized: false }
  const authorities = ca === null ? systemAuthorities() : readPem(settings, "SUPER_PI_DB_SSL_CA", ca)
  return {
    rejectUnauthorized: true,
    ...(authorities === undefined ? {} : { ca: authorities }),
    checkServerIdentity: (host, certificate) =>
      mode === "verify-ca" ? undefined : checkServerIdentity(serverName ?? host, certificate),
  }
}

const tlsOptions = (settings: PostgresSettings): ConnectionOptions | false => {
  const { tls } = settings
  if (tls.mode === "disable") return false
  const name = tls.serverName ?? (isIP(settings.host) === 0 ? settings.host : null)
  return {
    ...checks(settings, tls),
    ...(name === null ? {} : { servername: name }),
    ...(tls.cert === null || tls.key === null
      ? {}
      : {
          cert: readPem(settings, "SUPER_PI_DB_SSL_CERT", tls.cert),
          key: readPem(settings, "SUPER_PI_DB_SSL_KEY", tls.key),
        }),
  }
}

/** A socket that goes where the settings say, whatever the driver was told. */
class DirectedSocket extends Socket {
  readonly #settings: PostgresSettings

  constructor(settings: PostgresSettings) {
    super()
    this.#settings = settings
  }

  override connect(...args: Array<unknown>): this {
    const { host, ipv6, port } = this.#settings
    // the driver's own call; a second connect would only be a mistake of ours
    if (args.length === 0) return this
    return super.connect({ host, port, ...(ipv6 ? { family: 6 } : {}) })
  }
}

/**
 * How the driver reaches the server. It always asks a server that has a host name for exactly that name, and lets the system choose between
 * IPv4 and IPv6: for another name it is given an address that means nothing, and for both a socket that knows better.
 */
const target = (settings: PostgresSettings): Pick<ClientConfig, "host" | "port" | "stream"> => {
  const { host, ipv6, port, tls } = settings
  if (host.startsWith("/") || (!ipv6 && tls.serverName === null)) return { host, port }
  const stream = () => new DirectedSocket(settings)
  return { host: tls.serverName === null ? host : "0.0.0.0", port, stream }
}

export interface ConnectionOptionsOf {
  /** What `pg_stat_activity` says who this is. */
  readonly applicationName: string
  /** More settings of the session, for example `-c idle_session_timeout=6s`. */
  readonly options?: string
}

/**
 * The configuration of a connection that reads `bigint` as numbers.
 *
 * @throws StorageUnavailable where a certificate cannot be read.
 */
export const clientConfig = (
  settings: PostgresSettings,
  { applicationName, options }: ConnectionOptionsOf,
): ClientConfig => {
  const sessions = [settings.options, options].filter((one) => one !== null && one !== undefined)
  return {
    ...target(settings),
    database: settings.database,
    user: settings.user,
    ...(settings.password === null ? {} : { password: Redacted.value(settings.password) }),
    ssl: tlsOptions(settings),
    application_name: applicationName,
    ...(sessions.length === 0 ? {} : { options: sessions.join(" ") }),
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    types: numbers,
  }
}
