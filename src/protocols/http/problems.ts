/**
 * Problems: those that the server has by itself, the five failures of the contract as problems, and how a problem is worded where no
 * protocol does it.
 */
import type { Failure } from "../../domain/failure.ts"
import type { HttpReply, Problem } from "./route.ts"

/** What a client that comes back later is told to wait, in ms. */
const soon = 1000

export const draining: Problem = {
  status: 503,
  code: "draining",
  message: "the server is stopping; come back in a moment",
  retryAfterMs: 2000,
}

export const tooManyStreams: Problem = {
  status: 503,
  code: "too_many_streams",
  message: "too many answers stream at once; end some or come back later",
  retryAfterMs: soon,
}

export const tooManyPipelined: Problem = {
  status: 503,
  code: "too_many_requests",
  message: "too many requests wait on one connection; wait for some answers or use more connections",
  retryAfterMs: soon,
}

/** The same for no token and a wrong one. */
export const unauthenticated: Problem = {
  status: 401,
  code: "invalid_api_key",
  message: "expected a valid token in the header Authorization: Bearer TOKEN",
}

export const rateLimited = (retryAfterMs: number): Problem => ({
  status: 429,
  code: "rate_limited",
  message: `too many requests; come back in ${Math.max(1, Math.ceil(retryAfterMs / 1000))} s`,
  retryAfterMs,
})

/** A fault of ours; the log has its cause under `reference`. */
export const internal = (reference: string): Problem => ({
  status: 500,
  code: "internal",
  message: `something failed on our side (reference ${reference})`,
  reference,
})

/** The status of a failure on our side or at a provider, by its code. */
const serviceStatus: Readonly<Record<string, number>> = {
  provider_not_configured: 503,
  model_not_found: 404,
  storage: 503,
  draining: 503,
}

/** One of the five failures as a problem. */
export const problemOf = (failure: Failure): Problem => {
  const { message } = failure
  switch (failure._tag) {
    case "InvalidRequest":
      return { status: 400, code: "invalid_params", message, param: failure.path }
    case "NotFound":
      return { status: 404, code: "not_found", message }
    case "Refused":
      return { status: 403, code: failure.rule, message }
    case "Busy":
      return { status: 503, code: "busy", message, retryAfterMs: failure.retryAfterMs ?? soon }
    case "ServiceFailure": {
      const { code, reference } = failure
      const found = { status: serviceStatus[code] ?? 500, code, message }
      return reference === "" ? found : { ...found, reference }
    }
  }
}

/** `{"error": {code, message, …}}`, for paths that belong to no protocol. */
export const plainProblem = (problem: Problem): HttpReply => ({
  type: "json",
  status: problem.status,
  body: {
    error: {
      code: problem.code,
      message: problem.message,
      ...(problem.param === undefined ? {} : { param: problem.param }),
      ...(problem.reference === undefined ? {} : { reference: problem.reference }),
    },
  },
})
