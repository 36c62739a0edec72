/**
 * What PostgreSQL, its driver, TLS and the network report, as the storage errors with advice. The one place that knows their codes.
 */
import { errorCode } from "../../domain/error-code.ts"
import { CorruptRow, ForeignDatabase, NewerDatabase, type OpenError, StorageUnavailable } from "../errors.ts"

type Known = readonly [code: string, cause: string, advice: string]

const checkHost = "Check the host and port in DATABASE_URL, and that the server runs"
const checkUser = "Check the user and password in DATABASE_URL"
const checkAuthority = "Give the authority that signed it in SUPER_PI_DB_SSL_CA"
const comesBack = "Work goes on when it is back"

/** By SQLSTATE, exact or a class (two characters); the first that fits. */
const states: ReadonlyArray<Known> = [
  ["28P01", "the password is wrong", checkUser],
  ["28000", "the server does not let this user in", `${checkUser}, SUPER_PI_DB_SSL and pg_hba.conf of the server`],
  ["3D000", "there is no such database", "Create it (CREATE DATABASE), or check the name in DATABASE_URL"],
  ["53300", "the server has too many connections", "Lower POOL_SIZE, or raise max_connections of the server"],
  ["53100", "the disk of the server is full", "Free some space there; nothing was written and work goes on then"],
  ["53200", "the server ran out of memory", "Lower POOL_SIZE, or give the server more memory"],
  ["53400", "a limit of the server is reached", "Raise it in the server's configuration"],
  ["57P01", "the server is shutting down", comesBack],
  ["57P02", "the server crashed", comesBack],
  ["57P03", "the server is starting up", "Try again in a moment"],
  ["57P04", "the database was dropped", "Check the name in DATABASE_URL"],
  ["57P05", "the server ended an idle session", "Raise idle_session_timeout of the server"],
  ["57014", "the server cancelled the statement", "Raise statement_timeout of the server, or try again"],
  ["55P03", "a lock was not to be had in time", "Try again; somebody holds it in a transaction"],
  ["25006", "the server is read-only", "Give the address of the primary in DATABASE_URL"],
  ["25P02", "the transaction was aborted", "Try again"],
  ["25P03", "the server ended an idle transaction", "Raise idle_in_transaction_session_timeout of the server"],
  ["40001", "two transactions were in each other's way", "Try again"],
  ["40P01", "two transactions waited for each other", "Try again"],
  ["42501", "this user lacks a right", "Grant it, or use the owner of the tables"],
  ["42P01", "a table is missing", "Run `super-pi migrate`"],
  ["42703", "a column is missing", "Run `super-pi migrate`"],
  ["42883", "a function is missing", "Run `super-pi migrate`"],
  ["08P01", "the way of connecting was refused", "Connect directly, or through a pooler in session mode"],
  ["58", "the server has trouble with its disk", "Check the server's log"],
  ["XX001", "the server found damaged data", "Restore a backup; see the server's log"],
  ["XX002", "the server found a damaged index", "REINDEX it; see the server's log"],
  ["08", "the connection was lost", comesBack],
  ["53", "the server ran out of something", "Check the server's log"],
]

/** By the code of the system or of TLS. */
const codes: ReadonlyArray<Known> = [
  ["ECONNREFUSED", "nobody answers there", checkHost],
  ["ENOTFOUND", "there is no such host", checkHost],
  ["EAI_AGAIN", "the name of the host cannot be looked up", "Check the network and DNS"],
  ["EHOSTUNREACH", "the host cannot be reached", checkHost],
  ["ENETUNREACH", "the network cannot be reached", "Check the network; SUPER_PI_DB_IPV6=true connects over IPv6 only"],
  ["EADDRNOTAVAIL", "the host has no address here", "Check the host in DATABASE_URL and SUPER_PI_DB_IPV6"],
  ["ETIMEDOUT", "the server does not answer", checkHost],
  ["ECONNRESET", "the connection was lost", comesBack],
  ["EPIPE", "the connection was lost", comesBack],
  ["ENOENT", "there is no such socket", "Check the directory in DATABASE_URL and that the server runs"],
  ["EACCES", "access to the socket is denied", "Make it accessible for this user"],
  ["EMFILE", "this process has too many files open", "Raise its limit (ulimit -n)"],
  [
    "ERR_TLS_CERT_ALTNAME_INVALID",
    "the certificate of the server is for another name",
    "Check the host in DATABASE_URL, or give the name in SUPER_PI_DB_SSL_SNI",
  ],
  ["DEPTH_ZERO_SELF_SIGNED_CERT", "the certificate of the server is signed by itself", checkAuthority],
  ["SELF_SIGNED_CERT_IN_CHAIN", "the certificate of the server is signed by an unknown authority", checkAuthority],
  [
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
    "the certificate of the server is signed by an unknown authority",
    checkAuthority,
  ],
  ["UNABLE_TO_GET_ISSUER_CERT", "the certificate of the server is signed by an unknown authority", checkAuthority],
  [
    "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
    "the certificate of the server is signed by an unknown authority",
    checkAuthority,
  ],
  ["CERT_SIGNATURE_FAILURE", "the certificate of the server is signed by an unknown authority", checkAuthority],
  ["CERT_HAS_EXPIRED", "the certificate of the server has expired", "Renew it"],
  ["CERT_NOT_YET_VALID", "the certificate of the server is not valid yet", "Check the clocks of both"],
  ["CERT_REVOKED", "the certificate of the server was revoked", "Renew it"],
  ["INVALID_CA", "the authority may not sign certificates", "Check SUPER_PI_DB_SSL_CA"],
  [
    "ERR_OSSL_X509_KEY_VALUES_MISMATCH",
    "certificate and key of this client do not belong together",
    "Check SUPER_PI_DB_SSL_CERT and SUPER_PI_DB_SSL_KEY",
  ],
]

/** By prefix of the code, after the exact ones. */
const codeClasses: ReadonlyArray<Known> = [
  ["ERR_OSSL_PEM_", "a certificate or key is no PEM file", "Check SUPER_PI_DB_SSL_CA, _CERT and _KEY"],
  [
    "ERR_SSL_TLSV1_ALERT_UNKNOWN_CA",
    "the server does not accept the certificate of this client",
    "Check SUPER_PI_DB_SSL_CERT",
  ],
  [
    "ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED",
    "the server asks for a certificate of this client",
    "Give one in SUPER_PI_DB_SSL_CERT and SUPER_PI_DB_SSL_KEY",
  ],
  ["ERR_SSL_", "the encrypted connection failed", "Check SUPER_PI_DB_SSL and the certificates of both sides"],
  ["EPROTO", "the encrypted connection failed", "Check SUPER_PI_DB_SSL and the certificates of both sides"],
]

/** What the driver says without a code. */
const texts: ReadonlyArray<Known> = [
  ["does not support SSL", "the server has no encryption", "Set SUPER_PI_DB_SSL=disable, or turn ssl on in the server"],
  ["establishing an SSL connection", "the server refused encryption", "Check that it is a PostgreSQL server"],
  ["password must be a string", "the server asks for a password", "Give one in DATABASE_URL"],
  ["timeout exceeded when trying to connect", "no connection became free in time", "Raise POOL_SIZE"],
  ["connection timeout", "the server does not answer", checkHost],
  ["timeout expired", "the server does not answer", checkHost],
  ["Connection terminated", "the connection was lost", comesBack],
  ["not queryable", "the connection was lost", comesBack],
  ["after calling end on the pool", "the store is closed", "Open it again"],
]

/** What lies behind the wrappers of `@effect/sql`, of Effect's own promises, and of several attempts to connect. */
const innermost = (cause: unknown): unknown => {
  let found = cause
  for (let depth = 0; depth < 8; depth++) {
    if (found instanceof StorageUnavailable) return found
    if (errorCode(found) !== "" || typeof found !== "object" || found === null) return found
    if (found instanceof AggregateError && found.errors.length > 0) found = found.errors[0]
    else if ("cause" in found && found.cause !== undefined) found = found.cause
    else if ("error" in found && found.error !== undefined) found = found.error
    else return found
  }
  return found
}

/** SQLSTATE of what the server refused, like `23505`; empty where it was not the server. */
export const sqlState = (cause: unknown): string => {
  const found = innermost(cause)
  const code = errorCode(found)
  return /^[0-9A-Z]{5}$/.test(code) && typeof found === "object" && found !== null && "severity" in found ? code : ""
}

const hitOf = (cause: unknown): Known | undefined => {
  const state = sqlState(cause)
  if (state !== "")
    return states.find(([known]) => state === known) ?? states.find(([known]) => state.slice(0, 2) === known)
  const code = errorCode(cause)
  if (code !== "")
    return codes.find(([known]) => code === known) ?? codeClasses.find(([known]) => code.startsWith(known))
  const text = cause instanceof Error ? cause.message : String(cause)
  return texts.find(([known]) => text.includes(known))
}

/** Any failure of the database as {@link StorageUnavailable}; never the driver's own wording where a clear one is known. */
export const unavailable = (location: string, cause: unknown): StorageUnavailable => {
  const found = innermost(cause)
  if (found instanceof StorageUnavailable) return found
  const hit = hitOf(found)
  const code = errorCode(found)
  const said = code === "" ? "" : ` (${code})`
  if (hit !== undefined) return new StorageUnavailable({ location, cause: `${hit[1]}${said}`, advice: hit[2] })
  const text = found instanceof Error ? found.message : String(found)
  return new StorageUnavailable({ location, cause: `${text}${said}`, advice: "Check the server and its log" })
}

/**
 * The connection broke, or never came to be: whether the server did what it was asked is unknown. Everything else is an answer of the server.
 */
export const isDisconnected = (cause: unknown): boolean => {
  const state = sqlState(cause)
  return state === "" || state.startsWith("08") || state.startsWith("57P")
}

/** Keeps typed storage errors and turns everything else into {@link StorageUnavailable}. */
export const openFailure = (location: string, cause: unknown): OpenError =>
  cause instanceof ForeignDatabase || cause instanceof NewerDatabase || cause instanceof CorruptRow
    ? cause
    : unavailable(location, cause)
