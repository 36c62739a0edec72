/**
 * Connections of the stock SQL client (`@effect/sql-sqlite-node`), for all that is not hot: what reads beside an owner, what an owner reads rarely,
 * migrations. Everything that loads `@effect/sql` is behind this file, which is only ever imported when such a connection is opened.
 */
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import { SqlError } from "@effect/sql/SqlError"
import { make } from "@effect/sql-sqlite-node/SqliteClient"
import { Effect, Scope } from "effect"
import type { Rows, Scalar } from "../reading.ts"

/** What fails is the client's error, with the driver's as its cause. */
export interface Client {
  /** The rows of one statement. */
  readonly rows: (statement: string, params?: ReadonlyArray<Scalar>) => Effect.Effect<Rows, SqlError>
  /** The bytes of the database as it is. */
  readonly image: Effect.Effect<Uint8Array, SqlError>
  /** False once the scope of the connection is closed. */
  readonly isOpen: () => boolean
}

/** Opens a connection for the scope: on a file, or on a database that is read into memory. It never changes how a file keeps its log. */
export const openClient = (
  source: string | Buffer,
  { readonly }: { readonly readonly: boolean },
): Effect.Effect<Client, SqlError, Scope.Scope> =>
  Effect.gen(function* () {
    // The client hands it to the driver, which also takes the bytes of a database.
    const filename = source as unknown as string
    const sql = yield* make({ filename, readonly, disableWAL: true }).pipe(
      Effect.provide(reactivityLayer),
      Effect.catchAllDefect((cause) => new SqlError({ cause, message: "the database cannot be opened" })),
    )
    let open = true
    const close = Effect.sync(() => {
      open = false
    })
    yield* Scope.addFinalizer(yield* Effect.scope, close)
    // The client has one connection, and this is its only user. Asked for now, and not by each statement, it is never that of a
    // transaction which the caller has open through another client.
    const connection = yield* Effect.scoped(sql.reserve)
    return {
      image: sql.export,
      isOpen: () => open,
      rows: (statement, params = []) =>
        Effect.suspend(() => {
          try {
            // kept statements would keep the failure to prepare one as well, long after its cause is gone
            return connection.executeUnprepared(statement, params, undefined)
          } catch (cause) {
            return new SqlError({ cause, message: "the statement cannot be prepared" })
          }
        }),
    }
  })
