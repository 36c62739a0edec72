/**
 * `SuperPi.layer` on a PostgreSQL server: the same application, another storage.
 */
import { it } from "@effect/vitest"
import { Effect, Either, Layer } from "effect"
import { describe, expect } from "vitest"
import { Store, SuperPi } from "../../src/index.ts"
import { postgresSettings } from "../../src/storage/postgres/settings.ts"
import { describePostgres, postgresDatabase } from "../support/postgres.ts"

const defaults = { model: "mock/echo" }

const ask = (text: string) =>
  Effect.gen(function* () {
    const pi = yield* SuperPi
    const [latest] = yield* pi.conversations({ limit: 1 })
    const conversation = latest === undefined ? yield* pi.open() : pi.conversation(latest.conversation_id)
    return (yield* conversation.ask(text)).text
  })

describePostgres("SuperPi.layer on a server", () => {
  it.scopedLive("owns the database, answers, and goes on with the same conversation at the next start", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const layer = SuperPi.layer({ storage: { url }, defaults })
      expect(yield* Effect.provide(ask("one"), layer)).toBe("You said: one")
      const postgres = Either.getOrThrow(postgresSettings({ DATABASE_URL: url, POOL_SIZE: "2" }))
      const again = SuperPi.layer({ storage: { postgres }, defaults })
      const [text, all, location] = yield* Effect.provide(
        Effect.all([
          ask("two"),
          Effect.flatMap(SuperPi, (pi) => pi.conversations()),
          Effect.map(Store, (store) => store.location),
        ]),
        again,
      )
      expect(text).toBe("You said: two")
      expect(all).toHaveLength(1)
      expect(location).toBe(url.replace(/:[^:@/]+@/, "@"))
    }),
  )

  it.scopedLive("fails with DatabaseInUse where another one has it", () =>
    Effect.gen(function* () {
      const { url } = yield* postgresDatabase
      const scope = yield* Effect.scope
      yield* Layer.buildWithScope(SuperPi.layer({ storage: { url }, defaults, program: "the first" }), scope)
      const second = yield* Effect.flip(Effect.scoped(Layer.build(SuperPi.layer({ storage: { url }, defaults }))))
      expect(second._tag).toBe("DatabaseInUse")
      expect(second.message).toContain("is in use by the first (process")
    }),
  )
})

describe("the storage option", () => {
  it.effect("refuses a URL that cannot be meant, without its password", () =>
    Effect.gen(function* () {
      const layer = SuperPi.layer({ storage: { url: "postgresql://u:geheim@host" }, defaults })
      const error = yield* Effect.flip(Effect.scoped(Layer.build(layer)))
      expect(error.message).toContain("storage.url: expected the name of a database at the end")
      expect(error.message).not.toContain("geheim")
    }),
  )
})
