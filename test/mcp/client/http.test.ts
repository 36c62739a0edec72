/**
 * MCP servers behind an address, by what goes over the wire.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { SessionsService } from "../../../src/actors/sessions.ts"
import { ask, callOf, isReady, openWith, resultsIn, serverWhen, textOf, withMcpNode, withPlace } from "./node.ts"
import { resultFor, type ScriptedHttp, scriptedHttp, type Trick } from "./scripted-http.ts"

const rules = [callOf("^read", "mcp__web__read"), callOf("^write", "mcp__web__write")]

/** A node with one server behind an address, and what a person wrote gets for an answer from its calls. */
const withServer = <A, E>(
  trick: Trick,
  use: (
    sessions: SessionsService,
    http: ScriptedHttp,
    said: (prompt: string) => Effect.Effect<string, unknown>,
  ) => Effect.Effect<A, E>,
) =>
  Effect.scoped(
    Effect.flatMap(scriptedHttp(trick), (http) =>
      withPlace((place) =>
        withMcpNode(
          place,
          { rules, servers: [{ name: "web", transport: "http", url: http.url, headers: { "x-key": "secret" } }] },
          (sessions) =>
            Effect.flatMap(openWith(sessions), (id) =>
              use(sessions, http, (prompt) =>
                Effect.gen(function* () {
                  yield* ask(sessions, id, prompt)
                  return textOf(resultsIn(yield* sessions.transcript({ conversationId: id })).at(-1))
                }),
              ),
            ),
        ),
      ),
    ),
  )

const calls = ({ seen }: ScriptedHttp) => seen.filter(({ rpc }) => rpc === "tools/call")

describe("Streamable HTTP", () => {
  it.live("every request after the handshake carries the session, the version and the configured headers", () =>
    withServer(
      () => false,
      (_, http, said) =>
        Effect.gen(function* () {
          expect(yield* said("read")).toBe("did read")
          const [call] = calls(http)
          expect(call?.headers["mcp-session-id"]).toBe("first")
          expect(call?.headers["mcp-protocol-version"]).toMatch(/^2025-/)
          expect(http.seen.every(({ headers }) => headers["x-key"] === "secret")).toBe(true)
        }),
    ),
  )

  it.live("a session that the server has forgotten is begun anew once, and the call is made again", () =>
    withServer(
      () => false,
      (sessions, http, said) =>
        Effect.gen(function* () {
          yield* said("write")
          http.session = "second"
          expect(yield* said("write")).toBe("did write")
          expect(calls(http).map(({ headers }) => headers["mcp-session-id"])).toEqual(["first", "first", "second"])
          expect(yield* sessions.effects({})).toEqual([])
        }),
    ),
  )

  it.live("a server that forgets every session is not asked without end", () =>
    withServer(
      ({ rpc }, response) => rpc === "tools/call" && response.writeHead(404).end() !== undefined,
      (_, http, said) =>
        Effect.gen(function* () {
          expect(yield* said("write")).toContain("the session has expired")
          expect(calls(http)).toHaveLength(2)
        }),
    ),
  )

  it.live("the session is ended with DELETE when the node stops", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const http = yield* scriptedHttp()
        yield* withPlace((place) =>
          withMcpNode(place, { servers: [{ name: "web", transport: "http", url: http.url }] }, (sessions) =>
            serverWhen(sessions, "web", isReady),
          ),
        )
        expect(http.seen.at(-1)).toMatchObject({ method: "DELETE", headers: { "mcp-session-id": "first" } })
      }),
    ),
  )

  it.live("an answer as an event stream is as good as one as JSON", () =>
    withServer(
      ({ body, rpc }, response) => {
        if (rpc !== "tools/call") return false
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.end(`event: message\ndata: ${JSON.stringify(resultFor(body ?? {}))}\n\n`)
        return true
      },
      (_, __, said) => Effect.map(said("write"), (text) => expect(text).toBe("did write")),
    ),
  )

  it.live("a stream that ends without the answer leaves the call in doubt at once", () =>
    withServer(
      ({ rpc }, response) => {
        if (rpc !== "tools/call") return false
        response.writeHead(200, { "content-type": "text/event-stream" }).end(": nothing\n\n")
        return true
      },
      (sessions, _, said) =>
        Effect.gen(function* () {
          expect(yield* said("write")).toContain("the stream of the answer ended")
          expect(yield* sessions.effects({})).toHaveLength(1)
        }),
    ),
  )

  it.live("an answer that says that the request was wrong is the end of the call, one that broke is a doubt", () =>
    withServer(
      ({ body, rpc }, response) => {
        if (rpc !== "tools/call") return false
        response.writeHead((body as { params: { name: string } }).params.name === "read" ? 400 : 500).end("oh no")
        return true
      },
      (sessions, _, said) =>
        Effect.gen(function* () {
          expect(yield* said("read")).toContain("did not carry out the call")
          expect(yield* said("write")).toContain("may or may not have been carried out")
          expect(yield* sessions.effects({})).toHaveLength(1)
        }),
    ),
  )

  it.live("a server that wants a login is shown as such, and tried again when a call needs it", () =>
    withServer(
      (request, response) => request.headers.authorization === undefined && response.writeHead(401).end() !== undefined,
      (sessions) =>
        Effect.gen(function* () {
          const view = yield* serverWhen(sessions, "web", ({ state }) => state === "needs_login")
          expect(view.detail).toBe("the server wants a login")
        }),
    ),
  )
})

describe("the older HTTP+SSE", () => {
  /** Speaks it at the same address; `endpoint` is where it wants the messages. */
  const older = (endpoint: string): Trick => {
    let stream: Parameters<Trick>[1] | null = null
    return ({ body, method, path }, response) => {
      if (method === "GET" && path === "/mcp") {
        stream = response
        response.writeHead(200, { "content-type": "text/event-stream" })
        response.write(`event: endpoint\ndata: ${endpoint}\n\n`)
        return true
      }
      if (path === "/mcp") return response.writeHead(405).end() !== undefined
      response.writeHead(202).end()
      if (body?.id !== undefined) stream?.write(`event: message\ndata: ${JSON.stringify(resultFor(body))}\n\n`)
      return true
    }
  }

  it.live("is spoken where the first POST is not allowed", () =>
    withServer(older("/messages"), (_, http, said) =>
      Effect.gen(function* () {
        expect(yield* said("write")).toBe("did write")
        expect(calls(http)[0]?.path).toBe("/messages")
      }),
    ),
  )

  it.live("never sends a message to another origin", () =>
    withServer(older("http://127.0.0.1:1/messages"), (sessions, http) =>
      Effect.gen(function* () {
        const view = yield* serverWhen(sessions, "web", ({ state }) => state === "backoff")
        expect(view.detail).toContain("origin")
        expect(http.seen.every(({ path }) => path === "/mcp")).toBe(true)
      }),
    ),
  )
})
