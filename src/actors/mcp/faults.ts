/**
 * What went wrong on the way to an MCP server, in our words. The protocol's client throws errors of its own and of the system.
 */
import {
  InsufficientScopeError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnauthorizedError,
} from "@modelcontextprotocol/client"
import { errorCode } from "../../domain/error-code.ts"
import { isRecord } from "../../domain/json.ts"
import { CallError, ConnectError } from "./connection.ts"
import { streamEnded } from "./http.ts"
import { LoginNeeded } from "./oauth.ts"

/** Characters of a message that are shown. */
const maxMessage = 500

export const messageOf = (error: unknown): string => {
  const text = error instanceof Error ? error.message : String(error)
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : ""
  const line = `${text}${cause}`.replace(/\s+/g, " ").trim()
  return line.length > maxMessage ? `${line.slice(0, maxMessage)}…` : line
}

/** The error and what caused it, outermost first. */
const chainOf = (error: unknown): ReadonlyArray<unknown> => {
  const chain: Array<unknown> = []
  for (let at = error; at !== undefined && at !== null && chain.length < 5; at = isRecord(at) ? at.cause : undefined) {
    chain.push(at)
  }
  return chain
}

export const statusOf = (error: unknown): number | null => {
  for (const one of chainOf(error)) {
    if (one instanceof SdkHttpError) return one.status
    // The older transport has its own error.
    if (one instanceof Error && one.name === "SseError" && "code" in one && typeof one.code === "number")
      return one.code
  }
  return null
}

const wantsLogin = (error: unknown): boolean =>
  statusOf(error) === 401 ||
  chainOf(error).some((one) => one instanceof UnauthorizedError || one instanceof LoginNeeded)

/** What a login has to allow beside what it does, where a server says that it allows too little: scopes, or "" where it names none. */
export const scopeMissing = (error: unknown): string | null => {
  const refused = chainOf(error).find((one) => one instanceof InsufficientScopeError)
  return refused === undefined ? null : (refused.requiredScope ?? "")
}

const tooLittle = (scope: string): string =>
  `the login allows too little${scope === "" ? "" : `: it has not the scope ${scope.slice(0, maxMessage)}`}`

/** The connection was never made, so nothing was delivered. */
const notConnected = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"])

const isUndelivered = (error: unknown): boolean => chainOf(error).some((one) => notConnected.has(errorCode(one)))

export const isTimeout = (error: unknown): boolean =>
  error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout

/** Why a connection was not made. */
export const connectErrorOf = (error: unknown): ConnectError => {
  if (error instanceof ConnectError) return error
  const scope = scopeMissing(error)
  if (scope !== null) return new ConnectError("login", tooLittle(scope))
  if (wantsLogin(error)) return new ConnectError("login", "the server wants a login")
  if (isTimeout(error)) {
    return new ConnectError("unreachable", "it did not answer the handshake in time (mcpStartupTimeoutMs)")
  }
  return new ConnectError("unreachable", messageOf(error))
}

/** What became of a call, and of its connection. `session`: the server knows the connection as a session. */
export const callErrorOf = (error: unknown, session: boolean): CallError => {
  if (error instanceof CallError) return error
  const scope = scopeMissing(error)
  // The connection is as good as before, for what the login allows.
  if (scope !== null) return new CallError("login", tooLittle(scope), false)
  if (wantsLogin(error)) return new CallError("login", "the server wants a login", true, true)
  if (error instanceof ProtocolError) {
    if (error.message.includes(streamEnded)) return new CallError("unanswered", "the stream of the answer ended", false)
    return new CallError("refused", messageOf(error), false)
  }
  if (isUndelivered(error)) return new CallError("undelivered", messageOf(error), true)
  const status = statusOf(error)
  if (status !== null) {
    // A session that the server does not know any more: it has not looked at the call.
    if (status === 404 && session) return new CallError("undelivered", "the session has expired", true, true)
    if (status < 500) return new CallError("refused", messageOf(error), false)
    return new CallError("unanswered", messageOf(error), true)
  }
  if (error instanceof SdkError) {
    if (error.code === SdkErrorCode.NotConnected) return new CallError("undelivered", messageOf(error), true)
    if (error.code === SdkErrorCode.ConnectionClosed)
      return new CallError("unanswered", "the connection was lost", true)
    // An answer that came and is none.
    if (error.code === SdkErrorCode.InvalidResult) return new CallError("refused", messageOf(error), false)
  }
  return new CallError("unanswered", messageOf(error), true)
}
