/**
 * Servers that answer what is no answer: the link says so and is tried again, and the node goes on.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import * as fc from "fast-check"
import { type CallError, ConnectError } from "../../../src/actors/mcp/connection.ts"
import { openConnection } from "../../../src/actors/mcp/open.ts"
import { scriptedHttp, type Trick } from "./scripted-http.ts"

/** Nonsense is waited for this long, in ms; what is to succeed has much longer. */
const nonsenseMs = 400
const patience = 50_000

const open = (url: string, startupMs: number) =>
  openConnection({
    server: { name: "fuzz", transport: "http", url },
    root: "/",
    env: {},
    startupMs,
    signal: new AbortController().signal,
    tokens: null,
    version: "0",
    onTools: () => undefined,
    onLost: () => undefined,
    log: () => undefined,
  })

const junk = fc.oneof(
  fc.string(),
  fc.json(),
  fc.constantFrom(
    "",
    "null",
    "[]",
    "{",
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":99,"result":{}}',
    '{"jsonrpc":"2.0","id":0,"result":7}',
  ),
)
const answers = fc.record({
  status: fc.constantFrom(200, 202, 204, 400, 404, 405, 500),
  type: fc.constantFrom("application/json", "text/event-stream", "text/html", "application/json; charset=x"),
  body: fc.oneof(
    junk,
    junk.map((text) => `data: ${text}\n\n`),
  ),
})

/** Answers every request of one method, or (null) every one, with the same. */
const answering =
  (
    rpc: string | null,
    answer: () => { readonly status: number; readonly type: string; readonly body: string },
  ): Trick =>
  (request, response) => {
    if (request.method !== "POST" || (rpc !== null && request.rpc !== rpc)) return false
    const { body, status, type } = answer()
    response.writeHead(status, { "content-type": type }).end(status === 204 ? "" : body)
    return true
  }

describe("a server that answers nonsense", () => {
  it.live(
    "to the handshake is one that cannot be had",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          let answer = { status: 200, type: "", body: "" }
          const { url } = yield* scriptedHttp(answering(null, () => answer))
          const property = fc.asyncProperty(answers, async (next) => {
            answer = next
            const outcome = await open(url, nonsenseMs).catch((error: unknown) => error)
            expect(outcome).toBeInstanceOf(ConnectError)
          })
          yield* Effect.promise(() => fc.assert(property, { numRuns: 15 }))
        }),
      ),
    60_000,
  )

  it.live(
    "to a call ends that call, and the next one finds the connection as it was",
    () =>
      Effect.scoped(
        Effect.gen(function* () {
          let answer: { status: number; type: string; body: string } | null = null
          const { url } = yield* scriptedHttp((request, response, http) =>
            answer === null
              ? false
              : answering("tools/call", () => answer ?? { status: 500, type: "", body: "" })(request, response, http),
          )
          const connection = yield* Effect.promise(() => open(url, patience))
          const call = (ms: number) =>
            connection.call(
              "read",
              {},
              { signal: AbortSignal.timeout(ms), onProgress: () => undefined, elicit: null, conversation: 1 },
            )
          const property = fc.asyncProperty(answers, async (next) => {
            answer = next
            const outcome = await call(nonsenseMs).catch((error: CallError) => error.problem)
            expect(outcome).toBeDefined()
            answer = null
            expect(await call(patience)).toMatchObject({ content: [{ type: "text", text: "did read" }] })
          })
          yield* Effect.promise(() => fc.assert(property, { numRuns: 15 }))
          yield* Effect.promise(() => connection.close())
        }),
      ),
    60_000,
  )
})
