/**
 * Failures as JSON-RPC errors. Pure. The codes are part of the protocol (docs/json-rpc.md).
 */
import { type Failure, InvalidRequest } from "../../domain/failure.ts"
import { nearestNames } from "../../domain/nearest.ts"
import { code, type RpcError } from "./message.ts"

/** One of the five failures as an error object. */
export const errorOf = (failure: Failure): RpcError => {
  const message = failure.message
  switch (failure._tag) {
    case "InvalidRequest": {
      const { path, expected, actual } = failure
      return { code: code.invalidParams, message, data: { path, expected, actual } }
    }
    case "NotFound":
      return { code: code.notFound, message, data: { what: failure.what } }
    case "Refused":
      return { code: code.refused, message, data: { rule: failure.rule } }
    case "Busy":
      return { code: code.busy, message, data: { what: failure.what, retryAfterMs: failure.retryAfterMs } }
    case "ServiceFailure":
      return { code: code.internal, message, data: { code: failure.code, reference: failure.reference } }
  }
}

/** A fault of the node: the caller gets a reference, the log the cause. */
export const faultOf = (reference: string): RpcError => ({
  code: code.internal,
  message: `Internal error (reference ${reference})`,
  data: { code: "defect", reference },
})

/** A call without a login that is needed; `wrong` where it was one with a wrong token. */
export const unauthenticated = (wrong: boolean): RpcError => ({
  code: code.unauthenticated,
  message: wrong
    ? "Not authenticated: auth.login: expected a valid token"
    : "Not authenticated: call auth.login with a token first",
  data: { method: "auth.login" },
})

/** An unknown method, with the nearest known one where one resembles it. */
export const methodNotFound = (method: string, known: ReadonlyArray<string>): RpcError => {
  const shown = method.length <= 60 ? method : `${method.slice(0, 60)}…`
  const nearest = nearestNames(method, known, 1)[0] ?? null
  const hint = nearest === null ? "see node.info" : `did you mean ${nearest}?`
  return {
    code: code.methodNotFound,
    message: `Method not found: ${JSON.stringify(shown)}; ${hint}`,
    data: { method: shown, nearest },
  }
}

export const invalidParams = (path: string, expected: string, actual: string): InvalidRequest =>
  new InvalidRequest({ path, expected, actual })
