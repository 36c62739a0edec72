/**
 * Servers that know only the older protocol, each in its way, and servers that take their time: all of them are there in the end.
 */
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { isReady, serverWhen, withMcpNode, withPlace } from "./node.ts"
import { scriptedHttp } from "./scripted-http.ts"

/** The question for the newer protocol has half of it. */
const startupMs = 8_000

/** How the scripted process comes up. */
const startOf = (behavior: string, settings: { readonly startupMs?: number }) =>
  withPlace((place) =>
    withMcpNode(place, { servers: [place.scripted("one", { MCP_BEHAVIOR: behavior })], ...settings }, (sessions) =>
      Effect.map(serverWhen(sessions, "one", isReady), ({ restarts }) => ({
        restarts,
        started: place.notes().filter(({ event }) => event === "started").length,
      })),
    ),
  )

describe("a server is there in the end", () => {
  it.live("that ends when it is asked for the newer protocol", () =>
    Effect.map(startOf("strict", {}), (start) => expect(start).toEqual({ restarts: 0, started: 2 })),
  )

  it.live("that says nothing to the question for the newer protocol", () =>
    Effect.map(startOf("mute", { startupMs }), ({ restarts }) => expect(restarts).toBe(0)),
  )

  it.live("that takes long to come up", () =>
    Effect.map(startOf("slow", {}), (start) => expect(start).toEqual({ restarts: 0, started: 1 })),
  )

  it.live("that is behind an address and keeps the question for the newer protocol to itself", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const { seen, url } = yield* scriptedHttp(({ rpc }) => rpc === "server/discover")
        yield* withPlace((place) =>
          withMcpNode(place, { startupMs, servers: [{ name: "web", transport: "http", url }] }, (sessions) =>
            serverWhen(sessions, "web", isReady),
          ),
        )
        expect(seen.some(({ rpc }) => rpc === "initialize")).toBe(true)
      }),
    ),
  )
})
