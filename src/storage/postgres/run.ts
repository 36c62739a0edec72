/**
 * How reads run: through `@effect/sql` on the pool, one statement and so one snapshot each. A connection that breaks is replaced, and the
 * statement asked again, for as long as the reader's patience goes; then the read fails and the next one tries anew. One that the pool sent
 * away comes back a little later, so that the queue stays short and the work of the node does not fail for a burst.
 */
import { TransactionConnection } from "@effect/sql/SqlClient"
import type { PgClient } from "@effect/sql-pg/PgClient"
import { Context, Effect, Random } from "effect"
import { StorageUnavailable } from "../errors.ts"
import { type Reading, type Rows, readingOver, type Scalar } from "../reading.ts"
import { isDisconnected, unavailable } from "./failures.ts"
import { decodeTexts } from "./text.ts"

export type Param = Scalar | ReadonlyArray<number>
export type PostgresReading = Reading<Param>

/** Milliseconds between two attempts. */
const retryPause = 50
/** Milliseconds before a read that the pool sent away comes back; up to twice that, so that not all of them come at once. */
const shedPause = 150

/** Whether the pool itself refused: nobody gets a connection soon. */
const isShed = (cause: unknown): boolean =>
  (typeof cause === "object" && cause !== null && "cause" in cause ? cause.cause : cause) instanceof StorageUnavailable

/** On a connection of the pool, also where the caller has a transaction open: that one is on a database of the caller's. */
const onPool = <A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.contextWithEffect((context: Context.Context<never>) =>
    context.unsafeMap.has(TransactionConnection.key)
      ? Effect.mapInputContext(effect, () => Context.omit(TransactionConnection)(context))
      : effect,
  )

export const reading = (sql: PgClient, location: string, patienceMs: number): PostgresReading => {
  const rowsOf = (
    statement: string,
    params: ReadonlyArray<Param>,
    since: number,
  ): Effect.Effect<Rows, StorageUnavailable> =>
    Effect.catchAll(onPool(sql.unsafe<Record<string, unknown>>(statement, params)), (cause) => {
      const error = unavailable(location, cause)
      const closed = error.cause === "the store is closed"
      const shed = isShed(cause)
      if (closed || !(shed || isDisconnected(cause)) || performance.now() - since > patienceMs) return error
      const again = Effect.suspend(() => rowsOf(statement, params, since))
      if (!shed) return Effect.delay(again, retryPause)
      return Effect.flatMap(Random.nextIntBetween(shedPause, shedPause * 2), (ms) => Effect.delay(again, ms))
    })
  return readingOver({
    location,
    rows: (statement, params) => Effect.suspend(() => rowsOf(statement, params, performance.now())),
    failure: unavailable,
    row: (row) => decodeTexts({ ...row }),
  })
}
