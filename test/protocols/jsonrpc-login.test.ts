/** `auth.login`: nothing else is answered before it, wrong tokens run out, and who logged in stays who they are. */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Either } from "effect"
import { authenticatorOf } from "../../src/protocols/auth/tokens.ts"
import { serveUnix } from "../../src/protocols/jsonrpc/serve.ts"
import { makeFakeSessions } from "./fake-sessions.ts"
import { connect, type LineClient } from "./line-client.ts"
import { protocolService } from "./service.ts"

const scratch = mkdtempSync(join(tmpdir(), "sp-rpc-login-"))
let sockets = 0

const auth = Either.getOrThrow(authenticatorOf({ tokens: { alice: "key-a", bob: "key-b" } }, undefined))

/** A server that wants tokens, and as many clients as a test likes. */
const setup = Effect.gen(function* () {
  const fake = yield* makeFakeSessions({})
  const path = join(scratch, `s${++sockets}`)
  yield* serveUnix(path, { ...protocolService(fake.sessions), auth })
  const client = Effect.acquireRelease(
    Effect.promise(() => connect(path)),
    (opened) => Effect.sync(() => opened.destroy()),
  )
  return { ...fake, client }
})

const request = (client: LineClient, method: string, params?: unknown) =>
  Effect.promise(() => client.request(method, params))

describe("a connection that has not logged in", () => {
  it.scopedLive("gets -32001 for every method, known or not, and reaches no session", () =>
    Effect.gen(function* () {
      const { calls, client } = yield* setup
      const stranger = yield* client
      for (const method of ["session.open", "session.list", "node.info", "models.list", "no.such", "node.tree"]) {
        expect((yield* request(stranger, method)).error).toEqual({
          code: -32001,
          message: "Not authenticated: call auth.login with a token first",
          data: { method: "auth.login" },
        })
      }
      stranger.send('[{"jsonrpc":"2.0","id":1,"method":"session.list"},{"jsonrpc":"2.0","method":"session.open"}]\n')
      expect(yield* Effect.promise(() => stranger.next())).toMatchObject([{ id: 1, error: { code: -32001 } }])
      expect(calls).toEqual([])
    }),
  )

  it.scopedLive("is let in by a right token, from the next message of the same batch on", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const alice = yield* client
      expect((yield* request(alice, "auth.login", { token: "key-a" })).result).toEqual({ principal: "alice" })
      expect((yield* request(alice, "session.list")).result).toEqual([])
      const bob = yield* client
      bob.send(
        '[{"jsonrpc":"2.0","id":1,"method":"auth.login","params":{"token":"key-b"}},{"jsonrpc":"2.0","id":2,"method":"session.list"}]\n',
      )
      const answers = yield* Effect.promise(() => bob.next())
      expect(answers).toMatchObject([
        { id: 1, result: { principal: "bob" } },
        { id: 2, result: [] },
      ])
    }),
  )

  it.scopedLive("is ended after five wrong tokens, with an answer to each", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const guesser = yield* client
      for (let i = 0; i < 5; i++) {
        const { error } = yield* request(guesser, "auth.login", { token: `guess ${i}` })
        expect(error).toMatchObject({ code: -32001, message: "Not authenticated: auth.login: expected a valid token" })
      }
      expect(yield* Effect.promise(() => guesser.next())).toBeNull()
    }),
  )

  it.scopedLive("guesses on few connections only: its address has to wait then", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      for (let round = 0; round < 6; round++) {
        const guesser = yield* client
        for (let i = 0; i < 5; i++) yield* request(guesser, "auth.login", { token: "guess" })
      }
      const late = yield* client
      const { error } = yield* request(late, "auth.login", { token: "key-a" })
      expect(error).toMatchObject({ code: -32002, data: { what: "login" } })
      expect(Number(error?.data?.retryAfterMs)).toBeGreaterThan(0)
    }),
  )

  it.scopedLive("is told what is wrong with the parameters of a login", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const stranger = yield* client
      expect((yield* request(stranger, "auth.login")).error).toMatchObject({
        code: -32602,
        data: { path: "token", expected: "a token", actual: "nothing" },
      })
      expect((yield* request(stranger, "auth.login", { token: 7 })).error?.code).toBe(-32602)
    }),
  )
})

describe("a connection that has logged in", () => {
  it.scopedLive("may do so again, but not as somebody else", () =>
    Effect.gen(function* () {
      const { client } = yield* setup
      const alice = yield* client
      for (let i = 0; i < 2; i++) {
        expect((yield* request(alice, "auth.login", { token: "key-a" })).result).toEqual({ principal: "alice" })
      }
      expect((yield* request(alice, "auth.login", { token: "key-b" })).error).toMatchObject({
        code: -32003,
        data: { rule: "login" },
      })
      expect((yield* request(alice, "session.list")).result).toEqual([])
    }),
  )
})

describe("a server without tokens", () => {
  it.scopedLive("lets everybody in as local, and takes a login for what it is", () =>
    Effect.gen(function* () {
      const fake = yield* makeFakeSessions({})
      const path = join(scratch, `s${++sockets}`)
      yield* serveUnix(path, protocolService(fake.sessions))
      const client = yield* Effect.promise(() => connect(path))
      expect((yield* request(client, "auth.login", { token: "any" })).result).toEqual({ principal: "local" })
      client.destroy()
    }),
  )
})
