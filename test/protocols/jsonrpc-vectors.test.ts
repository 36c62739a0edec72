/** The examples of the JSON-RPC 2.0 specification, with methods of ours in the place of its made-up ones. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { connect } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-vectors-"))
let sockets = 0

const error = (code: number, id: unknown = null) => ({ jsonrpc: "2.0", id, error: { code } })

/** What is sent, and what comes back; null for nothing. */
const vectors: ReadonlyArray<readonly [name: string, sent: string, answer: unknown]> = [
  [
    "a call with positional parameters",
    '{"jsonrpc": "2.0", "method": "session.list", "params": [{"limit": 5}], "id": 1}',
    { jsonrpc: "2.0", id: 1, result: [] },
  ],
  [
    "a call with named parameters",
    '{"jsonrpc": "2.0", "method": "session.list", "params": {"limit": 5}, "id": 3}',
    { jsonrpc: "2.0", id: 3, result: [] },
  ],
  ["a notification", '{"jsonrpc": "2.0", "method": "session.list", "params": {"limit": 5}}', null],
  ["a notification of a method that is not there", '{"jsonrpc": "2.0", "method": "foobar"}', null],
  ["a call of a method that is not there", '{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', error(-32601, "1")],
  ["invalid JSON", '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', error(-32700)],
  ["an invalid request", '{"jsonrpc": "2.0", "method": 1, "params": "bar"}', error(-32600)],
  [
    "a batch of invalid JSON",
    '[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]',
    error(-32700),
  ],
  ["an empty array", "[]", error(-32600)],
  ["an invalid batch that is not empty", "[1]", [error(-32600)]],
  ["an invalid batch", "[1,2,3]", [error(-32600), error(-32600), error(-32600)]],
  [
    "a batch",
    '[{"jsonrpc":"2.0","method":"session.list","id":"1"},{"jsonrpc":"2.0","method":"session.list","params":{"limit":7}},{"jsonrpc":"2.0","method":"session.list","id":"2"},{"foo":"boo"},{"jsonrpc":"2.0","method":"foo.get","params":{"name":"myself"},"id":"5"},{"jsonrpc":"2.0","method":"session.list","id":"9"}]',
    [
      { jsonrpc: "2.0", id: "1", result: [] },
      { jsonrpc: "2.0", id: "2", result: [] },
      error(-32600),
      error(-32601, "5"),
      { jsonrpc: "2.0", id: "9", result: [] },
    ],
  ],
  [
    "a batch of notifications",
    '[{"jsonrpc":"2.0","method":"session.list"},{"jsonrpc":"2.0","method":"session.list"}]',
    null,
  ],
  ["the id null", '{"jsonrpc":"2.0","method":"session.list","id":null}', { jsonrpc: "2.0", id: null, result: [] }],
  ["a fraction as id", '{"jsonrpc":"2.0","method":"session.list","id":1.5}', { jsonrpc: "2.0", id: 1.5, result: [] }],
  ["an object as id", '{"jsonrpc":"2.0","method":"session.list","id":{}}', error(-32600)],
]

/** Answers of a batch may come in any order. */
const inOrder = (answer: unknown): unknown =>
  Array.isArray(answer) ? [...answer].sort((a, b) => (JSON.stringify(a.id) < JSON.stringify(b.id) ? -1 : 1)) : answer

describe("the specification's example of", () => {
  it.scopedLive.each(vectors)("%s", ([, sent, answer]) =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      const path = join(scratch, `s${++sockets}`)
      yield* serveUnix(path, protocolService(fake.sessions))
      const client = yield* Effect.promise(() => connect(path))
      client.send(`${sent}\n`)
      // The end of the input ends the connection behind the last answer.
      client.end()
      const first = yield* Effect.promise(() => client.next())
      if (answer === null) expect(first).toBeNull()
      else {
        expect(inOrder(first)).toMatchObject(inOrder(answer) as object)
        expect(yield* Effect.promise(() => client.next())).toBeNull()
      }
    }),
  )
})
