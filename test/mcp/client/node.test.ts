/**
 * MCP servers behind conversations: a whole node, real processes, scripted models.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import type { Event } from "../../../src/domain/event.ts"
import { collect } from "../../conversation/harness.ts"
import {
  ask,
  callOf,
  isReady,
  offeredIn,
  openWith,
  resultsIn,
  serverWhen,
  textOf,
  withMcpNode,
  withPlace,
} from "./node.ts"

const order = ["read", "write", "put", "slow", "ask", "die", "dieOnce", "grow", "fail", "silent", "rich", "roots"]
const names = (server: string) => order.map((tool) => `mcp__${server}__${tool}`)

describe("tools of MCP servers", () => {
  it.live("are offered in the order of the servers and of their lists, once the servers are there", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        { servers: [place.scripted("one"), place.scripted("two")], rules: [{ match: "", steps: [{ text: "hi" }] }] },
        (sessions) =>
          Effect.gen(function* () {
            const id = yield* openWith(sessions)
            yield* ask(sessions, id, "hello")
            const offered = offeredIn(yield* sessions.transcript({ conversationId: id }))
            expect(offered).toEqual(["echo", ...names("one"), ...names("two")])
          }),
      ),
    ),
  )

  it.live("run, and their results reach the model as text, images and structured data", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        {
          servers: [place.scripted("one")],
          rules: [
            callOf("read", "mcp__one__read", { text: "x" }),
            callOf("rich", "mcp__one__rich"),
            callOf("fail", "mcp__one__fail"),
          ],
        },
        (sessions) =>
          Effect.gen(function* () {
            const id = yield* openWith(sessions)
            yield* ask(sessions, id, "read")
            yield* ask(sessions, id, "rich")
            yield* ask(sessions, id, "fail")
            const [read, rich, fail] = resultsIn(yield* sessions.transcript({ conversationId: id }))
            expect(textOf(read)).toBe("read: x")
            expect(textOf(rich)).toBe(
              "look\n[image/png]\n[resource test://a]\ninside\n[resource test://b: b]\n[sound of type audio/wav, 3 bytes: cannot be shown]",
            )
            expect(fail?.isError).toBe(true)
            expect(textOf(fail)).toBe("it did not work")
          }),
      ),
    ),
  )

  it.live("know the working directory of the node as their root", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__roots")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          yield* ask(sessions, id, "go")
          const [result] = resultsIn(yield* sessions.transcript({ conversationId: id }))
          expect(JSON.parse(textOf(result)).roots[0].uri).toBe(`file://${place.directory}`)
        }),
      ),
    ),
  )

  it.live("are listed anew when the server says that they changed", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__grow")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          yield* ask(sessions, id, "go")
          const view = yield* serverWhen(sessions, "one", ({ tools }) => tools.includes("mcp__one__grown"))
          expect(view.tools).toEqual([...names("one"), "mcp__one__grown"])
          yield* ask(sessions, id, "again")
          expect(offeredIn(yield* sessions.transcript({ conversationId: id }))).toContain("mcp__one__grown")
        }),
      ),
    ),
  )

  it.live("show their progress while they run, and are told when they are cancelled", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__slow")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          const shown = yield* collect(
            sessions,
            id,
            (event) => event.type === "tool_output" && event.delta.includes("at it"),
          )
          const run = yield* Effect.fork(ask(sessions, id, "go"))
          yield* Fiber.join(shown)
          yield* sessions.cancel({ conversationId: id })
          yield* Fiber.join(run)
          yield* serverWhen(sessions, "one", () => place.notes().some(({ event }) => event === "cancelled"))
          // It only reads: nothing is in doubt.
          expect(yield* sessions.effects({})).toEqual([])
        }),
      ),
    ),
  )
})

describe("a server that dies", () => {
  it.live(
    "in the middle of a call leaves the call in doubt, comes back, and has the same tools in the same order",
    () =>
      withPlace((place) =>
        withMcpNode(
          place,
          {
            servers: [place.scripted("one"), place.scripted("two")],
            rules: [callOf("die", "mcp__one__die"), callOf("", "mcp__one__read", { text: "back" })],
          },
          (sessions) =>
            Effect.gen(function* () {
              const id = yield* openWith(sessions)
              yield* ask(sessions, id, "die")
              const [died] = resultsIn(yield* sessions.transcript({ conversationId: id }))
              expect(died?.isError).toBe(true)
              expect(textOf(died)).toContain("may or may not have been carried out")
              expect(yield* sessions.effects({})).toHaveLength(1)
              const view = yield* serverWhen(
                sessions,
                "one",
                ({ restarts, state }) => state === "ready" && restarts === 1,
              )
              expect(view.tools).toEqual(names("one"))
              yield* ask(sessions, id, "read")
              const entries = yield* sessions.transcript({ conversationId: id })
              expect(textOf(resultsIn(entries)[1])).toBe("read: back")
              // The prompt never changed: the tools were offered all the time.
              expect(offeredIn(entries)).toEqual(["echo", ...names("one"), ...names("two")])
              expect(place.notes().filter(({ event, tool }) => event === "call" && tool === "die")).toHaveLength(1)
            }),
        ),
      ),
  )

  it.live("is asked again, once, where the call changes nothing", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__dieOnce")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          yield* ask(sessions, id, "go")
          const [result] = resultsIn(yield* sessions.transcript({ conversationId: id }))
          expect(textOf(result)).toBe("still here")
          expect(place.notes().filter(({ event }) => event === "call")).toHaveLength(2)
          expect(yield* sessions.effects({})).toEqual([])
        }),
      ),
    ),
  )

  it.live("before it is there is tried again", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one", { MCP_BEHAVIOR: "exit-once" })] }, (sessions) =>
        Effect.gen(function* () {
          const view = yield* serverWhen(sessions, "one", isReady)
          expect(view.detail).toBeNull()
          expect(place.notes().filter(({ event }) => event === "started")).toHaveLength(2)
        }),
      ),
    ),
  )

  it.live("leaves no process behind when the node stops, nor when it is away", () =>
    withPlace((place) =>
      Effect.gen(function* () {
        yield* withMcpNode(place, { servers: [place.scripted("one")] }, (sessions) =>
          serverWhen(sessions, "one", isReady),
        )
        const [started] = place.notes()
        expect(() => process.kill(Number(started?.pid), 0)).toThrow()
      }),
    ),
  )
})

describe("a server that cannot be had", () => {
  it.live("does not keep the others, says why, and costs a call one clear answer", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        {
          servers: [
            { name: "gone", transport: "stdio", command: "no-such-program" },
            {
              name: "secret",
              transport: "http",
              url: "http://127.0.0.1:9/mcp",
              headers: { Authorization: ["Bearer $", "{NOT_SET_ANYWHERE}"].join("") },
            },
            place.scripted("one"),
          ],
          rules: [{ match: "", steps: [{ text: "hi" }] }],
        },
        (sessions) =>
          Effect.gen(function* () {
            const id = yield* openWith(sessions)
            yield* ask(sessions, id, "hello")
            const [gone, secret, one] = yield* sessions.mcpServers({ conversationId: null })
            expect(gone).toMatchObject({ state: "failed", tools: [] })
            expect(gone?.detail).toContain('expected a program, got "no-such-program"')
            expect(secret).toMatchObject({ state: "failed" })
            expect(secret?.detail).toBe("headers: expected variables that are set, but NOT_SET_ANYWHERE is not")
            expect(one?.state).toBe("ready")
          }),
      ),
    ),
  )

  it.live("and does not answer the handshake in time is given up and tried again later", () =>
    withPlace((place) =>
      withMcpNode(place, { startupMs: 300, servers: [place.scripted("one", { MCP_BEHAVIOR: "hang" })] }, (sessions) =>
        Effect.gen(function* () {
          const view = yield* serverWhen(sessions, "one", ({ state }) => state === "backoff")
          expect(view.detail).not.toBeNull()
        }),
      ),
    ),
  )

  it.live("is a call that gives no answer in its time is in doubt", () =>
    withPlace((place) =>
      withMcpNode(
        place,
        { callMs: 200, servers: [place.scripted("one")], rules: [callOf("", "mcp__one__silent")] },
        (sessions) =>
          Effect.gen(function* () {
            const id = yield* openWith(sessions)
            yield* ask(sessions, id, "go")
            const [result] = resultsIn(yield* sessions.transcript({ conversationId: id }))
            expect(textOf(result)).toContain("no answer within 0.2 s")
            expect(yield* sessions.effects({})).toHaveLength(1)
            // The connection is as good as before, and the server was told.
            expect(yield* serverWhen(sessions, "one", isReady)).toMatchObject({ restarts: 0 })
            yield* serverWhen(sessions, "one", () => place.notes().some(({ event }) => event === "cancelled"))
          }),
      ),
    ),
  )
})

describe("what a server asks in the middle of a call", () => {
  it.live("is a durable question to the person, whose answer goes back to the server", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__ask")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          const answering = sessions.watch({ conversationId: id, after: null, interactive: true }).pipe(
            Stream.filter((event): event is Extract<Event, { type: "ui_request" }> => event.type === "ui_request"),
            Stream.take(1),
            Stream.runForEach((event) => {
              expect(event.title).toBe("one asks: What now?")
              const color = { selected: ["blue"], text: null }
              const count = { selected: [], text: "3" }
              const sure = { selected: ["(leave out)"], text: null }
              return sessions.answer({
                questionId: event.question_id,
                answer: { color, count, sure },
                requestId: null,
                client: null,
              })
            }),
          )
          const watching = yield* Effect.fork(answering)
          const joined = yield* collect(sessions, id, (event) => event.type === "snapshot")
          yield* Fiber.join(joined)
          yield* ask(sessions, id, "go")
          yield* Fiber.join(watching)
          const [result] = resultsIn(yield* sessions.transcript({ conversationId: id }))
          expect(JSON.parse(textOf(result))).toEqual({ action: "accept", content: { color: "blue", count: 3 } })
        }),
      ),
    ),
  )

  it.live("is declined where nobody can be asked", () =>
    withPlace((place) =>
      withMcpNode(place, { servers: [place.scripted("one")], rules: [callOf("", "mcp__one__ask")] }, (sessions) =>
        Effect.gen(function* () {
          const id = yield* openWith(sessions)
          yield* ask(sessions, id, "go")
          const [result] = resultsIn(yield* sessions.transcript({ conversationId: id }))
          expect(JSON.parse(textOf(result))).toEqual({ action: "decline" })
        }),
      ),
    ),
  )
})
