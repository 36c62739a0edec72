/**
 * `DATABASE_URL` taken apart: `postgres:`, `postgresql:` or `ecto:`, percent-encoded parts, IPv6 hosts in brackets, and the parameters that
 * hosting services put into it. Pure.
 */
import { Either } from "effect"

export interface DatabaseUrl {
  /** A host name, an address, or the directory of a unix socket (it begins with `/`). */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password: string | null
  /** `sslmode` and its paths, as given; null: not there. */
  readonly sslMode: string | null
  readonly sslCa: string | null
  readonly sslCert: string | null
  readonly sslKey: string | null
  /** `options`: settings of the session, as in `-c search_path=app`. */
  readonly options: string | null
}

/** What a URL has to look like, for messages. */
export const urlShape = "postgresql://user:password@host:port/database"

const schemes = ["postgres:", "postgresql:", "ecto:"]
const defaultPort = 5432

/** Parameters about encryption that are understood: another one is a mistake that must not pass for encryption. */
const sslParameters = ["ssl", "sslmode", "sslrootcert", "sslcert", "sslkey"]

/** A fault: what was expected, and what came without any secret. */
export interface UrlFault {
  readonly expected: string
  readonly got: string
}

type Read<A> = Either.Either<A, UrlFault>

const fault = (expected: string, got: string): Read<never> => Either.left({ expected, got })

const decoded = (part: string, what: string): Read<string> => {
  try {
    return Either.right(decodeURIComponent(part))
  } catch {
    return fault(`${what} that is percent-encoded (% as %25)`, "one that is not")
  }
}

/** `postgresql://user@/db?host=/run/postgresql` has no host: the URL parser wants one. */
const unnamed = ".socket"
const withHost = (rest: string): string => rest.replace(/^(\/\/(?:[^/?#]*@)?)(?=[:/?#]|$)/, `$1${unnamed}`)

const parsed = (url: string): Read<URL> => {
  const scheme = /^[a-z0-9+.-]*:/i.exec(url)?.[0].toLowerCase() ?? ""
  if (!schemes.includes(scheme)) {
    return fault(
      `a URL like ${urlShape}`,
      scheme === "" ? "one without a scheme" : `the scheme "${scheme.slice(0, 20)}"`,
    )
  }
  try {
    return Either.right(new URL(`postgresql:${withHost(url.slice(scheme.length))}`))
  } catch {
    return fault(`a URL like ${urlShape}, with special characters percent-encoded`, "one that cannot be read")
  }
}

/** Null where the mode is left to others. */
const sslMode = (parameters: URLSearchParams): Read<string | null> => {
  const unknown = [...parameters.keys()].find((name) => /^ssl/i.test(name) && !sslParameters.includes(name))
  if (unknown !== undefined && unknown !== "sslnegotiation") {
    return fault(`of the parameters about encryption only ${sslParameters.join(", ")}`, `"${unknown.slice(0, 30)}"`)
  }
  const mode = parameters.get("sslmode")
  if (mode !== null) return Either.right(mode)
  const ssl = parameters.get("ssl")
  if (ssl === null) return Either.right(null)
  if (ssl === "true" || ssl === "1") return Either.right("require")
  if (ssl === "false" || ssl === "0") return Either.right("disable")
  return fault("ssl=true or ssl=false", `"${ssl.slice(0, 20)}"`)
}

const portOf = (text: string): Read<number> => {
  if (text === "") return Either.right(defaultPort)
  const port = /^\d{1,5}$/.test(text) ? Number(text) : 0
  return port >= 1 && port <= 65_535 ? Either.right(port) : fault("a port from 1 to 65535", `"${text.slice(0, 20)}"`)
}

export const parseDatabaseUrl = (text: string): Read<DatabaseUrl> =>
  Either.gen(function* () {
    const url = yield* parsed(text.trim())
    const parameters = url.searchParams
    const named = url.hostname === unnamed ? "" : yield* decoded(url.hostname, "a host")
    const host = (named || parameters.get("host") || "localhost").replace(/^\[(.*)\]$/, "$1")
    const port = yield* portOf(parameters.get("port") ?? url.port)
    const database = yield* decoded(url.pathname.slice(1), "a database")
    if (database === "") return yield* fault(`the name of a database at the end, like ${urlShape}`, "none")
    const user = (yield* decoded(url.username, "a user")) || parameters.get("user") || ""
    if (user === "") return yield* fault(`the name of a user, like ${urlShape}`, "none")
    const password = (yield* decoded(url.password, "a password")) || parameters.get("password")
    return {
      host,
      port,
      database,
      user,
      password: password || null,
      sslMode: yield* sslMode(parameters),
      sslCa: parameters.get("sslrootcert"),
      sslCert: parameters.get("sslcert"),
      sslKey: parameters.get("sslkey"),
      options: parameters.get("options"),
    }
  })
