/**
 * Streams that no service should send: whatever arrives, a response ends with a result or a typed error, and never hangs.
 */
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { collect, kinds, modelOf, modelsAt, user } from "./ask.ts"
import { type Reply, type StandIn, startStandIn } from "./stand-in.ts"
import { wireFrames } from "./wire-formats.ts"

let server: StandIn
let reply: Reply = {}
beforeAll(async () => {
  server = await startStandIn(() => reply)
})
afterAll(() => server.close())

const whole = fc.record({
  text: fc.option(fc.string({ unit: "binary" }), { nil: undefined }),
  thinking: fc.option(fc.string(), { nil: undefined }),
  tools: fc.array(
    fc.record({
      id: fc.oneof(fc.string(), fc.constant("dup")),
      name: fc.oneof(fc.string(), fc.constant("read")),
      args: fc.oneof(fc.jsonValue(), fc.string()),
    }),
    { maxLength: 3 },
  ),
  stop: fc.option(fc.string(), { nil: undefined }),
})

/** Damage to a list of events. */
const damage = fc.oneof(
  fc.record({ kind: fc.constant("drop" as const), at: fc.nat(20) }),
  fc.record({ kind: fc.constant("repeat" as const), at: fc.nat(20) }),
  fc.record({ kind: fc.constant("swap" as const), at: fc.nat(20) }),
  fc.record({
    kind: fc.constant("insert" as const),
    at: fc.nat(20),
    frame: fc.oneof(
      fc.json().map((json) => `data: ${json}\n\n`),
      fc.string().map((text) => `data: ${text}\n\n`),
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        ": comment\n\n",
        "data:\n\n",
        "event: x\ndata: {}\n\n",
        "\r\n\r\n",
        "data: [DONE]\n\n",
        "id: 1\nretry: 5\n\n",
      ),
    ),
  }),
)

const damaged = (
  frames: ReadonlyArray<string>,
  all: ReadonlyArray<typeof damage extends fc.Arbitrary<infer D> ? D : never>,
) => {
  const out = [...frames]
  for (const one of all) {
    const at = Math.min(one.at, Math.max(0, out.length - 1))
    const frame = out[at] ?? ""
    if (one.kind === "drop") out.splice(at, 1)
    else if (one.kind === "repeat") out.splice(at, 0, frame)
    else if (one.kind === "swap") out.splice(at, 2, out[at + 1] ?? "", frame)
    else out.splice(at, 0, one.frame)
  }
  return out
}

describe("a damaged stream", () => {
  for (const kind of kinds) {
    it(`ends with a result or a typed error in the ${kind} format`, async () => {
      const models = modelsAt(server.url, { streamIdleTimeoutMs: 30_000 })
      await fc.assert(
        fc.asyncProperty(
          whole,
          fc.array(damage, { maxLength: 4 }),
          fc.option(fc.integer({ min: 1, max: 40 }), { nil: undefined }),
          fc.constantFrom("end" as const, "cut" as const),
          async (answer, all, pieceBytes, ending) => {
            const { text, thinking, stop, tools } = answer
            const frames = wireFrames[kind]({ text, thinking, tools, ...(stop === undefined ? {} : { stop }) })
            reply = { frames: damaged(frames, all), ending, ...(pieceBytes === undefined ? {} : { pieceBytes }) }
            const exit = await Effect.runPromiseExit(
              Effect.either(collect(models, { model: modelOf[kind], messages: [user("x")] })),
            )
            if (!Exit.isSuccess(exit)) throw new Error(`a defect instead of a typed error: ${exit.cause}`)
            const result = exit.value
            if (result._tag === "Left") {
              expect(["ModelTransient", "ModelRejected", "ContextOverflow"]).toContain(result.left._tag)
              return
            }
            expect(result.right.at(-1)?.type).toBe("finish")
            expect(result.right.filter(({ type }) => type === "finish")).toHaveLength(1)
          },
        ),
        { numRuns: 60 },
      )
    })
  }
})
