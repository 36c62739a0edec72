/**
 * What goes wrong, in OpenAI's shape: `{"error": {"message", "type", "param", "code"}}`. Pure.
 */
import type { Failure } from "../../domain/failure.ts"
import { InvalidRequest } from "../../domain/failure.ts"
import type { HttpReply, Problem } from "../http/route.ts"

/** The error object, alone in a body or in the middle of a stream. */
export interface ErrorObject {
  readonly error: {
    readonly message: string
    readonly type: string
    readonly param: string | null
    readonly code: string | null
  }
}

const typeOf = (status: number): string => {
  if (status === 401) return "authentication_error"
  if (status === 403) return "permission_error"
  if (status === 429) return "rate_limit_error"
  return status >= 500 ? "server_error" : "invalid_request_error"
}

/** Codes of the server that have another name here. */
const renamed: Readonly<Record<string, string>> = { not_json: "invalid_params" }

export const errorObject = ({ code, message, param, reference, status }: Problem): ErrorObject => ({
  error: {
    message: reference === undefined ? message : `${message} (reference ${reference})`,
    type: typeOf(status),
    param: param ?? null,
    code: renamed[code] ?? code,
  },
})

/** The whole answer. `x-should-retry: false` keeps clients from asking again for what will not change. */
export const problemReply = (problem: Problem): HttpReply => ({
  type: "json",
  status: problem.status,
  body: errorObject(problem),
  ...(problem.status >= 500 && problem.retryAfterMs === undefined ? { headers: { "x-should-retry": "false" } } : {}),
})

/** Fields of ours as the client knows them. */
const params: Readonly<Record<string, string>> = {
  "agent.model": "model",
  "agent.harness": "model",
  "agent.mode": "execution_mode",
  "agent.outputSchema": "response_format",
  content: "messages",
  name: "session_id",
}

/** One of the five failures. */
export const failureProblem = (failure: Failure): Problem => {
  const { message } = failure
  switch (failure._tag) {
    case "InvalidRequest": {
      const param = params[failure.path] ?? failure.path
      const told = `${param}: expected ${failure.expected}, got ${failure.actual}`
      if (param === "previous_response_id") {
        return { status: 404, code: "previous_response_not_found", message: told, param }
      }
      if (param === "model") return { status: 404, code: "model_not_found", message: told, param }
      return { status: 400, code: "invalid_params", message: told, param }
    }
    case "NotFound":
      return { status: 404, code: "not_found", message }
    case "Refused":
      return failure.rule === "provider_not_configured"
        ? { status: 503, code: failure.rule, message: failure.detail, param: "model" }
        : { status: 403, code: failure.rule, message }
    case "Busy": {
      const { retryAfterMs } = failure
      return { status: 503, code: "busy", message, retryAfterMs: retryAfterMs ?? 1_000 }
    }
    case "ServiceFailure": {
      const { code, reference } = failure
      if (code === "model_not_found") return { status: 404, code, message, param: "model" }
      if (code === "provider_not_configured") return { status: 503, code, message, param: "model" }
      return { status: 500, code: "internal_error", message, reference }
    }
  }
}

/** A turn that failed: the client's request was fine, what stands behind us was not. */
export const turnProblem = ({ code, message }: { readonly code: string; readonly message: string }): Problem => {
  if (code === "model_not_found") return { status: 404, code, message, param: "model" }
  if (code === "provider_not_configured") return { status: 503, code, message, param: "model" }
  if (code === "context_overflow") return { status: 400, code: "context_length_exceeded", message }
  if (code === "cancelled") return { status: 409, code, message }
  if (code === "parked") return { status: 503, code, message }
  return { status: 502, code, message }
}

/** A field that is not what it should be; thrown by the decoders and caught at their boundary. */
export const wrong = (path: string, expected: string, actual: string): InvalidRequest =>
  new InvalidRequest({ path, expected, actual })
