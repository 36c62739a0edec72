/**
 * Failures as errors of the protocol. Pure. The codes are part of the interface (docs/acp.md).
 */
import { RequestError } from "@agentclientprotocol/sdk"
import type { Failure } from "../../domain/failure.ts"

const code = { notFound: -32002, refused: -32003, busy: -32004, invalidParams: -32602, internal: -32603 } as const

/** One of the five failures. */
export const errorOf = (failure: Failure): RequestError => {
  const { message } = failure
  switch (failure._tag) {
    case "InvalidRequest": {
      const { actual, expected, path } = failure
      return new RequestError(code.invalidParams, message, { path, expected, actual })
    }
    case "NotFound":
      return new RequestError(code.notFound, message, { what: failure.what })
    case "Refused":
      return new RequestError(code.refused, message, { rule: failure.rule })
    case "Busy":
      return new RequestError(code.busy, message, { what: failure.what, retryAfterMs: failure.retryAfterMs })
    case "ServiceFailure":
      return new RequestError(code.internal, message, { code: failure.code, reference: failure.reference })
  }
}

/** A fault of this side: the editor gets a reference, the log the cause. */
export const faultOf = (reference: string): RequestError =>
  new RequestError(code.internal, `Internal error (reference ${reference})`, { code: "defect", reference })

/** What the first fault of parameters was, from what the protocol's schema says of them; null where it says nothing of that kind. */
export const firstFault = (data: unknown, path = ""): string | null => {
  if (typeof data !== "object" || data === null) return null
  for (const [key, value] of Object.entries(data)) {
    if (key === "_errors") {
      const [first] = Array.isArray(value) ? value : []
      if (typeof first === "string") return `${path === "" ? "params" : path}: ${first.replace(/^Invalid input: /, "")}`
      continue
    }
    const inner = firstFault(value, path === "" ? key : /^\d+$/.test(key) ? `${path}[${key}]` : `${path}.${key}`)
    if (inner !== null) return inner
  }
  return null
}
