/**
 * What a service's refusal means: wait, compact, or give up; with the service's own words and without secrets.
 */

import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { modelError } from "../../src/models/sdk/failure.ts"
import { providerMessage } from "../../src/models/sdk/provider-message.ts"
import { redactor } from "../../src/models/sdk/redact.ts"
import { retryAfterMs } from "../../src/models/sdk/retry-after.ts"
import { collect, hello, modelOf, modelsAt } from "./ask.ts"
import { type Reply, type StandIn, startStandIn } from "./stand-in.ts"
import type { WireKind } from "./wire-formats.ts"

let server: StandIn
let reply: Reply = {}
beforeAll(async () => {
  server = await startStandIn(() => reply)
})
afterAll(() => server.close())

const refusal = (kind: WireKind, answer: Reply) => {
  reply = answer
  return Effect.runPromise(Effect.flip(collect(modelsAt(server.url), { model: modelOf[kind], messages: hello })))
}

describe("a context that is too long", () => {
  const overflows: ReadonlyArray<readonly [WireKind, number, string]> = [
    [
      "chat",
      400,
      '{"error":{"message":"This model\'s maximum context length is 8192 tokens.","code":"context_length_exceeded"}}',
    ],
    [
      "chat",
      400,
      '{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error"}}',
    ],
    [
      "responses",
      400,
      '{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}',
    ],
    [
      "anthropic",
      400,
      '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
    ],
    [
      "anthropic",
      413,
      '{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}',
    ],
    [
      "gemini",
      400,
      '{"error":{"code":400,"message":"The input token count (1050000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}',
    ],
  ]
  for (const [kind, status, body] of overflows) {
    it(`is recognised in ${kind}: ${body.slice(0, 70)}…`, async () => {
      expect(await refusal(kind, { status, body })).toMatchObject({ _tag: "ContextOverflow" })
    })
  }

  it("is not seen in a rate limit that speaks of tokens", async () => {
    const body = '{"error":{"message":"Rate limit: too many tokens per minute; maximum context length is fine"}}'
    expect(await refusal("chat", { status: 429, body })).toMatchObject({ _tag: "ModelTransient" })
  })
})

describe("an error in mid-stream", () => {
  const event = (data: unknown, name?: string) => `${name ? `event: ${name}\n` : ""}data: ${JSON.stringify(data)}\n\n`
  const cases: ReadonlyArray<readonly [string, WireKind, ReadonlyArray<string>, object]> = [
    [
      "Anthropic's overloaded_error as the first event",
      "anthropic",
      [event({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "error")],
      { _tag: "ModelTransient", reason: "overloaded", status: 529, detail: "Overloaded" },
    ],
    [
      "Anthropic's rate_limit_error as the first event",
      "anthropic",
      [event({ type: "error", error: { type: "rate_limit_error", message: "slow" } }, "error")],
      { _tag: "ModelTransient", reason: "rate_limited" },
    ],
    [
      "Anthropic's invalid_request_error as the first event",
      "anthropic",
      [event({ type: "error", error: { type: "invalid_request_error", message: "no" } }, "error")],
      { _tag: "ModelRejected", detail: "no" },
    ],
    [
      "OpenAI's server error in a chat stream",
      "chat",
      [event({ error: { message: "The server had an error", type: "server_error", code: null } })],
      { _tag: "ModelTransient", reason: "server_error" },
    ],
    [
      "OpenAI's failed response",
      "responses",
      [
        event(
          {
            type: "response.failed",
            sequence_number: 0,
            response: { id: "r", error: { code: "server_error", message: "broke" }, incomplete_details: null },
          },
          "response.failed",
        ),
      ],
      { _tag: "ModelTransient", reason: "server_error", detail: "broke" },
    ],
    [
      "Gemini's unavailable",
      "gemini",
      [event({ error: { code: 503, message: "The model is overloaded.", status: "UNAVAILABLE" } })],
      { _tag: "ModelTransient", reason: "overloaded", status: 503 },
    ],
    [
      "Gemini's malformed function call",
      "gemini",
      [event({ candidates: [{ content: { role: "model", parts: [] }, finishReason: "MALFORMED_FUNCTION_CALL" }] })],
      { _tag: "ModelTransient", reason: "server_error" },
    ],
  ]
  for (const [name, kind, frames, expected] of cases) {
    it(`is understood: ${name}`, async () => {
      expect(await refusal(kind, { frames })).toMatchObject(expected)
    })
  }
})

describe("a refusal", () => {
  it("for want of money is final, although its status is 429", async () => {
    const body =
      '{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}'
    expect(await refusal("chat", { status: 429, body })).toMatchObject({ _tag: "ModelRejected", status: 429 })
  })

  it("takes Google's retry delay from the body", async () => {
    const body = JSON.stringify({
      error: { code: 429, message: "quota", status: "RESOURCE_EXHAUSTED", details: [{ retryDelay: "34.2s" }] },
    })
    expect(await refusal("gemini", { status: 429, body })).toMatchObject({ retryAfterMs: 34_200 })
  })

  for (const status of [401, 403, 404, 422]) {
    it(`with ${status} is final and carries the service's words`, async () => {
      const error = await refusal("chat", { status, body: '{"detail":[{"msg":"model: field required"}]}' })
      expect(error).toMatchObject({ _tag: "ModelRejected", status, detail: "model: field required" })
    })
  }
})

describe("an error of any shape", () => {
  it("becomes a model error without throwing", () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), (error, cause) => {
        const wrapped = Object.assign(new Error("x"), { cause, statusCode: error, responseBody: cause })
        for (const value of [error, wrapped]) {
          const mapped = modelError("p/m", value, (text) => text, 0)
          expect(["ModelTransient", "ModelRejected", "ContextOverflow"]).toContain(mapped._tag)
          expect(typeof mapped.message).toBe("string")
        }
      }),
    )
  })

  it("ends at a cause that points to itself", () => {
    const error = new Error("loop")
    error.cause = error
    expect(modelError("p/m", error, (text) => text, 0)).toMatchObject({ _tag: "ModelRejected", detail: "loop" })
  })
})

describe("Retry-After", () => {
  it("is read as seconds, as a date, in milliseconds, and capped at a minute", () => {
    expect(retryAfterMs({ "retry-after": "1.5" }, undefined, 0)).toBe(1_500)
    expect(retryAfterMs({ "retry-after": "86400" }, undefined, 0)).toBe(60_000)
    expect(retryAfterMs({ "retry-after-ms": "250", "retry-after": "9" }, undefined, 0)).toBe(250)
    expect(retryAfterMs({ "retry-after": new Date(5_000).toUTCString() }, undefined, 0)).toBe(5_000)
    expect(retryAfterMs({ "retry-after": new Date(5_000).toUTCString() }, undefined, 9_000)).toBe(0)
    for (const bad of ["", "soon", "-3", "NaN"]) expect(retryAfterMs({ "retry-after": bad }, undefined, 0)).toBeNull()
    expect(retryAfterMs(undefined, undefined, 0)).toBeNull()
  })

  it("is null or within 0 and 60,000 for any header", () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (header, body) => {
        const wait = retryAfterMs({ "retry-after": header }, body, 0)
        expect(wait === null || (wait >= 0 && wait <= 60_000)).toBe(true)
      }),
    )
  })
})

describe("the service's message", () => {
  it("is found in every usual place, as one line", () => {
    const expected: ReadonlyArray<readonly [string, string]> = [
      ['{"error":{"message":"a\\n b"}}', "a b"],
      ['{"error":"plain"}', "plain"],
      ['{"message":"m"}', "m"],
      ['{"detail":"d"}', "d"],
      ['[{"error":{"message":"listed"}}]', "listed"],
      ['{"errors":[{"message":"first"}]}', "first"],
      ["<html><head><title>503 Service</title></head></html>", "HTTP 503: 503 Service"],
      ["upstream connect error", "HTTP 503: upstream connect error"],
      ["", "fallback"],
    ]
    for (const [body, message] of expected) expect(providerMessage(body, "fallback", 503)).toBe(message)
    expect(providerMessage(undefined, undefined, 503)).toBe("HTTP 503")
    expect(providerMessage(JSON.stringify({ error: { message: "x".repeat(9_999) } }), "", 400)).toHaveLength(2_001)
  })
})

describe("redaction", () => {
  it("takes known keys and bearer tokens out of any text", () => {
    const redact = redactor(["sk-abcdef", undefined, "x"])
    expect(redact("key sk-abcdef, again sk-abcdef; x stays")).toBe("key [redacted], again [redacted]; x stays")
    expect(redact("Authorization: Bearer eyJhbGciOi.abc-def")).not.toContain("eyJhbGciOi")
  })
})
