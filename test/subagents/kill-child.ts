/**
 * One life of a node with subagents that kills itself around one of its commits. `SUPER_PI_SUBAGENTS_CASE` is the case as JSON; the last line
 * printed is what all of it looks like in the end.
 */
import { appendFileSync, writeSync } from "node:fs"
import { Effect, Layer, Logger } from "effect"
import { Sessions } from "../../src/actors/sessions.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store, type StoreService } from "../../src/storage/store.ts"
import { life, nodeOf } from "./life.ts"

interface KillCase {
  readonly db: string
  /** File that the unsafe calls append to. */
  readonly effects: string
  readonly death: { readonly n: number; readonly when: "before" | "after" } | null
}

const given: KillCase = JSON.parse(process.env.SUPER_PI_SUBAGENTS_CASE ?? "null")

let commits = 0

const maybeDie = (n: number, when: "before" | "after"): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (given.death?.n !== n || given.death.when !== when) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

const dying = (store: StoreService): StoreService => ({
  ...store,
  commit: (commit) =>
    Effect.suspend(() => {
      const n = ++commits
      return Effect.zipRight(maybeDie(n, "before"), Effect.zipLeft(store.commit(commit), maybeDie(n, "after")))
    }),
})

const store = Layer.orDie(Layer.scoped(Store, Effect.map(makeSqliteStore({ path: given.db }), dying)))
const node = nodeOf(store, (name) => appendFileSync(given.effects, `${name}\n`))

const program = Effect.flatMap(Sessions, life).pipe(
  Effect.provide(node),
  Effect.map((ended) => writeSync(1, JSON.stringify(ended))),
  Effect.provide(Logger.remove(Logger.defaultLogger)),
)

await Effect.runPromise(program)
