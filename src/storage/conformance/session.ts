/**
 * A test's use of one database: commits, and reopening in between.
 */
import { Effect, Either, Exit, Scope } from "effect"
import type { Seq } from "../../domain/ids.ts"
import type { Engine } from "../conformance.ts"
import type { CommitError, OpenError } from "../errors.ts"
import type { Commit, IdsByKind, StoreService } from "../store.ts"

/** Whether a session opens the database again after each of its commits. */
export type Reopening = "never" | "everyCommit"

export interface Session {
  /** The store as it is open now. */
  readonly store: () => StoreService
  /** Commits; in a reopening session the database is opened again afterwards. */
  readonly commit: (commit: Commit) => Effect.Effect<Seq, CommitError | OpenError>
  /** Commits, and gives the tag of the error or null. */
  readonly refusal: (commit: Commit) => Effect.Effect<string | null, OpenError>
  readonly mint: <K extends keyof IdsByKind>(kind: K) => Effect.Effect<IdsByKind[K], CommitError>
  readonly reopen: Effect.Effect<void, OpenError>
  /** For changes that are made without {@link commit}: reopens in a reopening session. */
  readonly reopenIfWanted: Effect.Effect<void, OpenError>
}

/** Runs a test body on a fresh database. */
export type Sessions = <E>(body: (session: Session) => Effect.Effect<void, E>) => Promise<void>

export const sessionsOn =
  (engine: Engine, reopening: Reopening): Sessions =>
  (body) =>
    Effect.runPromise(Effect.scoped(Effect.flatMap(makeSession(engine, reopening), body)))

const makeSession = (engine: Engine, reopening: Reopening): Effect.Effect<Session, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const database = yield* engine.database
    const open = Effect.gen(function* () {
      const scope = yield* Scope.make()
      return { scope, store: yield* Scope.extend(database.open, scope) }
    })
    let current = yield* open
    yield* Effect.addFinalizer(() => Scope.close(current.scope, Exit.void))
    const reopen = Effect.gen(function* () {
      yield* Scope.close(current.scope, Exit.void)
      current = yield* open
    })
    const commit = (rows: Commit) =>
      Effect.suspend(() => current.store.commit(rows)).pipe(
        Effect.either,
        Effect.tap(() => (reopening === "everyCommit" ? reopen : Effect.void)),
      )
    return {
      store: () => current.store,
      commit: (rows) => Effect.flatten(commit(rows)),
      refusal: (rows) => Effect.map(commit(rows), (result) => (Either.isLeft(result) ? result.left._tag : null)),
      mint: <K extends keyof IdsByKind>(kind: K) =>
        Effect.flatMap(
          Effect.suspend(() => current.store.mint(kind, 1)),
          ([id]) => (id === undefined ? Effect.dieMessage("mint gave no id") : Effect.succeed(id)),
        ),
      reopen,
      reopenIfWanted: Effect.suspend(() => (reopening === "everyCommit" ? reopen : Effect.void)),
    }
  })
