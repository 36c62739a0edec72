/**
 * One life of a node that works on a repository with `super-pi-code`, and kills itself at one commit. `SUPER_PI_UNDO_CASE` is the case as
 * JSON: `kill` null goes on to the end and undoes everything.
 */
import { Effect, Layer, Logger, Stream } from "effect"
import { Sessions, Store, SuperPi, textOf } from "../../src/index.ts"
import { makeSqliteStore } from "../../src/storage/sqlite/store.ts"
import { prompt, script } from "./case.ts"

export interface UndoCase {
  readonly db: string
  readonly dataDir: string
  readonly root: string
  /** Before or after which commit of this life it dies. */
  readonly kill: { readonly commit: number; readonly when: "before" | "after" } | null
}

const given: UndoCase = JSON.parse(process.env.SUPER_PI_UNDO_CASE ?? "null")

let commits = 0
const die = (when: "before" | "after"): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (given.kill?.commit !== commits || given.kill.when !== when) return Effect.void
    process.kill(process.pid, "SIGKILL")
    return Effect.never
  })

const storage = Layer.scoped(
  Store,
  Effect.map(makeSqliteStore({ path: given.db, synchronous: "NORMAL" }), (real) => ({
    ...real,
    commit: (commit: Parameters<typeof real.commit>[0]) =>
      Effect.suspend(() => {
        commits++
        return die("before").pipe(
          Effect.zipRight(real.commit(commit)),
          Effect.tap(() => die("after")),
        )
      }),
  })),
)

const program = Effect.gen(function* () {
  const pi = yield* SuperPi
  const sessions = yield* Sessions
  const conversation = yield* pi.open({ agent: { harness: "super-pi-code", mode: "auto" }, requestId: "one" })
  const { submission_id: id } = yield* conversation.submit(prompt, { requestId: "two" })
  yield* conversation.await(id)
  yield* Stream.runDrain(
    conversation.events.pipe(
      Stream.takeUntil(
        (event) =>
          (event.type === "snapshot" && event.session.state === "idle") ||
          (event.type === "state_changed" && event.to === "idle"),
      ),
    ),
  )
  const target = { conversationId: conversation.id }
  const views = yield* sessions.checkpoints(target)
  const first = Math.min(
    ...views.filter(({ kind, undone_by }) => kind === "turn" && undone_by === null).map((view) => view.id),
  )
  const result = Number.isFinite(first) ? yield* sessions.undo({ ...target, checkpoint: first }) : null
  const results = (yield* conversation.transcript).flatMap(({ model }) =>
    model.flatMap((message) => (message.role === "tool" ? [textOf(message.content)] : [])),
  )
  process.stdout.write(`${JSON.stringify({ commits, result, results, checkpoints: views.length })}\n`)
})

const layer = SuperPi.layer({
  storage,
  models: { env: {}, script },
  defaults: { model: "script/test", cwd: given.root, mode: "auto" },
  paths: { configDir: `${given.dataDir}/config`, dataDir: given.dataDir },
})

Effect.runPromise(
  program.pipe(Effect.provide(layer), Effect.provide(Logger.remove(Logger.defaultLogger))) as Effect.Effect<void>,
).then(
  () => process.exit(0),
  (error) => {
    process.stderr.write(`${error}\n`)
    process.exit(1)
  },
)
