/**
 * One life of a node for the tests of plugins that find and write files: a database, a scripted model, one prompt.
 */
import { Effect, Layer, Queue } from "effect"
import { SqliteStore } from "../../src/storage/sqlite/store.ts"
import { Store } from "../../src/storage/store.ts"
import { SuperPi } from "../../src/super-pi.ts"

const rules = [{ match: "^work$", steps: [{ tools: [{ name: "ls", args: {} }] }, { text: "done" }] }]

/**
 * Opens the conversation, or goes on with it, and ends when nothing is left to do. `onCommit` is called after each commit, with its number.
 */
export const life = (options: {
  readonly database: string
  /** With the directories `repo`, `config` and `data`. */
  readonly base: string
  readonly onCommit?: (number: number) => void
}) => {
  const { base, database, onCommit = () => undefined } = options
  const committed = Effect.runSync(Queue.unbounded<void>())
  let commits = 0
  const store = Layer.effect(
    Store,
    Effect.map(Store, (inner) => ({
      ...inner,
      commit: (rows: Parameters<typeof inner.commit>[0]) =>
        Effect.tap(inner.commit(rows), () =>
          Effect.sync(() => {
            onCommit(++commits)
            Queue.unsafeOffer(committed, undefined)
          }),
        ),
    })),
  ).pipe(Layer.provide(SqliteStore.layer({ path: database })))
  return Effect.gen(function* () {
    const superPi = yield* SuperPi
    const conversation = yield* superPi.open({ requestId: "one" })
    const settled = yield* conversation.ask("work", { requestId: "ask" })
    // What plugins do after a run is a task of its own.
    const rows = yield* Store
    while ((yield* rows.openTasks()).length > 0) yield* Queue.take(committed)
    return { status: settled.status, commits, entries: yield* rows.entries(conversation.id) }
  }).pipe(
    Effect.provide(
      SuperPi.layer({
        storage: store,
        models: { env: {}, model: "script/test", script: { rules } as never }, // the script's schema checks it
        defaults: { cwd: `${base}/repo`, mode: "auto" },
        paths: { configDir: `${base}/config`, dataDir: `${base}/data` },
        harness: "files",
        extraHarnesses: [
          { id: "files", name: "F", description: "F", prompt: "F", plugins: ["rules", "skills", "transcript-logger"] },
        ],
      }),
    ),
  )
}
