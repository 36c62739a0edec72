/** What strangers can do to the port of a node: nothing that others would notice. */
import { connect as connectTcp, type Socket } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Logger, LogLevel } from "effect"
import * as fc from "fast-check"
import type { HostPort } from "../../../src/domain/host-port.ts"
import { connectPeer } from "../../../src/protocols/peers/connect.ts"
import { maxHandshakeLine, renderHello } from "../../../src/protocols/peers/handshake.ts"
import { node, open, options } from "./support.ts"

/** Sends bytes and completes when the other side has ended the connection, with all that it said. */
const send = (address: HostPort, bytes: Uint8Array | string): Effect.Effect<string> =>
  Effect.async((resume) => {
    const socket = connectTcp(address)
    let heard = ""
    socket.on("connect", () => socket.write(bytes))
    socket.on("data", (chunk) => {
      heard += String(chunk)
    })
    socket.on("error", () => undefined)
    socket.on("close", () => resume(Effect.succeed(heard)))
    return Effect.sync(() => socket.destroy())
  })

/** Whether a node is served there; tried again where the machine was too slow for a short time limit. */
const stillServes = (address: HostPort) =>
  Effect.scoped(Effect.flatMap(connectPeer(address, options(1)), ({ sessions }) => sessions.open(open))).pipe(
    Effect.retry({ while: (fault) => fault._tag === "PeerFault" }),
  )

describe("a stranger", () => {
  it.scopedLive("that sends any bytes learns a nonce and nothing else, and harms nobody", () =>
    Effect.gen(function* () {
      const { address, fake } = yield* node(2, { timeoutMs: 500 })
      const line = fc.oneof(fc.string(), fc.json(), fc.constant(renderHello("stranger", "ab".repeat(32))))
      const bytes = fc
        .array(line, { minLength: 1, maxLength: 4 })
        .map((lines) => `${lines.join("\n")}\n`)
        .filter((text) => text !== "\n")
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(bytes, async (text) => {
            const [hello = "", ...rest] = (await Effect.runPromise(send(address, text))).split("\n")
            expect(Object.keys(JSON.parse(hello)).sort()).toEqual(["instance", "least", "most", "nonce", "program"])
            expect(rest.filter((one) => one !== "" && one !== '{"refused":"secret"}')).toEqual([])
          }),
          { numRuns: 30 },
        ),
      )
      expect(fake.calls).toEqual([])
      expect(yield* stillServes(address)).toMatchObject({ conversation_id: 1 })
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("that sends a line without an end is cut off once the line is too long", () =>
    Effect.gen(function* () {
      // Far beyond the time of a test: only the length can end it.
      const { address } = yield* node(2, { timeoutMs: 600_000 })
      yield* send(address, "x".repeat(maxHandshakeLine + 1))
      expect(yield* stillServes(address)).toMatchObject({ conversation_id: 1 })
    }).pipe(Logger.withMinimumLogLevel(LogLevel.None)),
  )

  it.scopedLive("that says nothing is cut off in time", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2, { timeoutMs: 50 })
      expect((yield* send(address, "")).split("\n")).toHaveLength(2)
      expect(yield* stillServes(address)).toMatchObject({ conversation_id: 1 })
    }),
  )

  it.scopedLive("that opens very many connections and says nothing keeps others out only while it holds them", () =>
    Effect.gen(function* () {
      const { address } = yield* node(2, { timeoutMs: 600_000 })
      /** Completes when the node said hello; the connection stays. */
      const hold = Effect.async<Socket>((resume) => {
        const socket = connectTcp(address)
        socket.on("error", () => undefined)
        socket.once("data", () => resume(Effect.succeed(socket)))
      })
      const held = yield* Effect.forEach(Array.from({ length: 128 }), () => hold, { concurrency: 16 })
      // One more is turned away without a word.
      expect(yield* send(address, "")).toBe("")
      for (const socket of held) socket.destroy()
      expect(yield* stillServes(address)).toMatchObject({ conversation_id: 1 })
    }),
  )
})
