/**
 * Effects in doubt through the contract: listed and settled by an attached process, once, and by nobody else.
 */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Deferred, Effect, Schema } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { attachSessions } from "../../src/assembly.ts"
import { defineTool, Sessions, SuperPi } from "../../src/index.ts"

const directory = mkdtempSync(join(tmpdir(), "super-pi-settle-"))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const models = {
  env: {},
  script: {
    rules: [
      { match: "go", steps: [{ tools: [{ name: "pay", args: { cents: 5 } }] }, { text: "hm" }] },
      { match: "take effect", steps: [{ text: "good to know" }] },
    ],
  },
} as const

/** A tool that says that it pays and never comes back. */
const payer = (paying: Deferred.Deferred<string>) =>
  defineTool({
    name: "pay",
    description: "Pays",
    parameters: Schema.Struct({ cents: Schema.Int }),
    effects: ["net_write"],
    execute: (_, { idempotencyKey }) => Effect.zipRight(Deferred.succeed(paying, idempotencyKey), Effect.never),
  })

describe("an effect in doubt", () => {
  it("is listed and settled by an attached process", () => {
    const path = join(directory, "attached.db")
    return Effect.runPromise(
      Effect.gen(function* () {
        const paying = yield* Deferred.make<string>()
        const layer = SuperPi.layer({
          storage: { path },
          models,
          defaults: { model: "script/test" },
          tools: [payer(paying)],
        })
        const { id, key } = yield* Effect.gen(function* () {
          const conversation = yield* (yield* SuperPi).open()
          yield* conversation.submit("go", { requestId: "go" })
          return { id: conversation.id, key: yield* Deferred.await(paying) }
        }).pipe(Effect.provide(layer))

        yield* Effect.gen(function* () {
          const pi = yield* SuperPi
          yield* pi.conversation(id).ask("go", { requestId: "go" })
          const attached = yield* attachSessions({ db: path, program: "other" })
          if (attached === null) return yield* Effect.dieMessage("nobody owns the database")
          const list = yield* attached.effects({})
          expect(list).toMatchObject([
            { state: "in_doubt", tool: "pay", arguments: { cents: 5 }, effect_id: key, conversation_id: id },
          ])
          expect(list[0]?.why).toMatch(/may or may not have taken effect/)
          const taskId = list[0]?.task_id
          if (taskId === undefined) return yield* Effect.dieMessage("nothing is in doubt")

          const other = { taskId, principal: "somebody else" }
          expect(yield* attached.effects({ principal: "somebody else" })).toEqual([])
          const refused = yield* Effect.flip(attached.settleEffect({ ...other, answer: "ignore" }))
          expect(refused).toMatchObject({ _tag: "NotFound", what: `call ${taskId}` })

          // Two answers that come together: one counts, the other one is told.
          const answers = ["happened", "not-happened"] as const
          const both = yield* Effect.forEach(
            answers,
            (answer) => Effect.either(attached.settleEffect({ taskId, answer })),
            { concurrency: 2 },
          )
          expect(both.map((one) => one._tag).sort()).toEqual(["Left", "Right"])
          expect(yield* attached.effects({})).toEqual([])
          const transcript = yield* (yield* Sessions).transcript({ conversationId: id })
          expect(transcript.filter((entry) => entry.kind === "pi.effect-settled")).toHaveLength(1)
        }).pipe(Effect.scoped, Effect.provide(layer))
      }),
    )
  })
})
