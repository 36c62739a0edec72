/**
 * Logins at MCP servers: what a node makes of them while it runs.
 */
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { login } from "../../../src/actors/mcp/login.ts"
import { tokenFiles } from "../../../src/actors/mcp/tokens.ts"
import type { SessionsService } from "../../../src/actors/sessions.ts"
import type { McpHttpServer } from "../../../src/domain/mcp.ts"
import { type LoginServer, loginServer } from "./login-server.ts"
import { ask, callOf, isReady, openWith, resultsIn, serverWhen, textOf, withMcpNode, withPlace } from "./node.ts"

const read = { name: "mcp__web__read", args: {} }
const rules = [
  callOf("^read", read.name),
  callOf("^write", "mcp__web__write"),
  { match: "^both", steps: [{ tools: [read, read] }, { text: "done" }] },
]

interface World {
  readonly sessions: SessionsService
  readonly http: LoginServer
  /** A person logs in, in another process as far as the node can tell. */
  readonly logIn: Effect.Effect<string, unknown>
  /** What a prompt's call comes to. */
  readonly said: (prompt: string) => Effect.Effect<string, unknown>
  /** What is kept of the login. */
  readonly kept: Effect.Effect<unknown>
}

/** A node with one server that wants a login. */
const withLogins = <A, E>(use: (world: World) => Effect.Effect<A, E>) =>
  Effect.acquireUseRelease(
    Effect.promise(loginServer),
    (http) =>
      withPlace((place) => {
        const server: McpHttpServer = { name: "web", transport: "http", url: http.url, headers: { "x-key": "secret" } }
        const tokens = tokenFiles(join(place.directory, "data"))
        const logIn = Effect.tryPromise(() =>
          login({
            server,
            tokens,
            version: "1.0.0",
            signal: AbortSignal.timeout(50_000),
            open: (address) => void fetch(address).then((response) => response.text()),
          }),
        )
        return withMcpNode(place, { rules, servers: [server] }, (sessions) =>
          Effect.flatMap(openWith(sessions), (id) =>
            use({
              sessions,
              http,
              logIn,
              kept: Effect.promise(() => tokens.read("web", http.url)),
              said: (prompt) =>
                Effect.gen(function* () {
                  yield* ask(sessions, id, prompt)
                  return textOf(resultsIn(yield* sessions.transcript({ conversationId: id })).at(-1))
                }),
            }),
          ),
        )
      }),
    (http) => Effect.promise(http.close),
  )

/** A node that has the server's tools. */
const withLoggedIn = <A, E>(use: (world: World) => Effect.Effect<A, E>) =>
  withLogins((world) =>
    Effect.gen(function* () {
      yield* world.logIn
      yield* world.sessions.restartMcpServer({ conversationId: null, name: "web" })
      yield* serverWhen(world.sessions, "web", isReady)
      return yield* use(world)
    }),
  )

describe("a login", () => {
  it.live("is used once the node is told of it, and asks for what the server names", () =>
    withLogins(({ http, logIn, said, sessions }) =>
      Effect.gen(function* () {
        const before = yield* serverWhen(sessions, "web", ({ state }) => state === "needs_login")
        expect(before.detail).toBe("the server wants a login")
        expect(yield* logIn).toBe("done")
        expect(http.visits).toMatchObject([{ scope: "read", code_challenge_method: "S256", resource: http.url }])
        expect(yield* sessions.restartMcpServer({ conversationId: null, name: "web" })).toMatchObject({
          state: "ready",
          tools: ["mcp__web__read", "mcp__web__write"],
        })
        expect(yield* said("read")).toBe("did read")
      }),
    ),
  )

  it.live("is refreshed by the node: the call is carried out once, and what is new is kept", () =>
    withLoggedIn(({ http, kept, said }) =>
      Effect.gen(function* () {
        const before = yield* kept
        http.expire()
        expect(yield* said("read")).toBe("did read")
        expect(http.calls).toEqual(["read"])
        expect(http.exchanges.map((one) => one.grant_type)).toEqual(["authorization_code", "refresh_token"])
        expect(yield* kept).not.toEqual(before)
        // The new refresh token is the one that is good now.
        http.expire()
        expect(yield* said("read")).toBe("did read")
        expect(http.visits).toHaveLength(1)
      }),
    ),
  )

  it.live("is refreshed once for calls that find it expired at the same time", () =>
    withLoggedIn(({ http, kept, said }) =>
      Effect.gen(function* () {
        expect(yield* said("read")).toBe("did read")
        http.expire()
        expect(yield* said("both")).toBe("did read")
        expect(http.calls).toEqual(["read", "read", "read"])
        expect(http.exchanges.map((one) => one.grant_type)).toEqual(["authorization_code", "refresh_token"])
        expect(yield* kept).toMatchObject({ login: { token_type: "Bearer" } })
      }),
    ),
  )

  it.live("that cannot be refreshed is said to the call; after another one the next call finds the server", () =>
    withLoggedIn(({ http, logIn, said, sessions }) =>
      Effect.gen(function* () {
        http.expire(true)
        expect(yield* said("read")).toContain("super-pi mcp login web")
        yield* serverWhen(sessions, "web", ({ state }) => state === "needs_login")
        expect(http.calls).toEqual([])
        expect(yield* sessions.effects({})).toEqual([])
        // Nobody tells the node: a call is a reason to look.
        yield* logIn
        expect(yield* said("read")).toBe("did read")
        yield* serverWhen(sessions, "web", isReady)
      }),
    ),
  )

  it.live("that allows too little fails the call that needs more, and the next one asks for both", () =>
    withLoggedIn(({ http, logIn, said, sessions }) =>
      Effect.gen(function* () {
        expect(yield* said("write")).toContain("the login allows too little: it has not the scope write")
        expect(yield* said("read")).toBe("did read")
        expect(yield* serverWhen(sessions, "web", isReady)).toMatchObject({ restarts: 0 })
        yield* logIn
        expect(http.visits.map(({ scope }) => scope)).toEqual(["read", "read write"])
        expect(yield* said("write")).toBe("did write")
        expect(http.calls).toEqual(["read", "write"])
        expect(yield* sessions.effects({})).toEqual([])
      }),
    ),
  )

  it.live("that is refused changes nothing", () =>
    withLoggedIn(({ http, kept, logIn, said }) =>
      Effect.gen(function* () {
        const before = yield* kept
        http.refuse = true
        const failure = yield* Effect.flip(logIn)
        expect(String(failure instanceof Error ? failure.cause : failure)).toContain("access_denied")
        expect(yield* kept).toEqual(before)
        expect(yield* said("read")).toBe("did read")
      }),
    ),
  )

  it.live("sends the headers of the server to the server only", () =>
    withLoggedIn(({ http, said }) =>
      Effect.gen(function* () {
        expect(yield* said("read")).toBe("did read")
        expect(http.asked.length).toBeGreaterThan(3)
        expect(http.asked.filter((headers) => "x-key" in headers)).toEqual([])
      }),
    ),
  )
})
