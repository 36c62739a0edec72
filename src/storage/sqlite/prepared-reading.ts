/**
 * Runs reads as prepared statements on a connection of the driver. Each is one synchronous step, so that on the writer's connection it sees
 * committed state only. A statement is prepared when it is first run, and once.
 */
import { Effect } from "effect"
import type { SqlRow } from "../decode.ts"
import { CorruptRow, type ReadError } from "../errors.ts"
import type { Reading, Scalar } from "../reading.ts"
import type { Database } from "./connection.ts"
import { closed, unavailable } from "./failures.ts"

export const preparedReading = (db: Database, location: string): Reading => {
  const prepare = (statement: string) => db.prepare<Array<Scalar>, SqlRow>(statement)
  const statements = new Map<string, ReturnType<typeof prepare>>()
  const prepared = (statement: string) => {
    const known = statements.get(statement)
    if (known !== undefined) return known
    const made = prepare(statement)
    statements.set(statement, made)
    return made
  }
  const run = <A>(body: () => A): Effect.Effect<A, ReadError> =>
    Effect.suspend((): Effect.Effect<A, ReadError> => {
      if (!db.open) return closed(location)
      try {
        return Effect.succeed(body())
      } catch (cause) {
        return cause instanceof CorruptRow ? cause : unavailable(location, cause)
      }
    })
  return {
    read: (statement, params, use) => run(() => use(prepared(statement).all(...params))),
    one: (statement, params, decode) =>
      run(() => {
        const row = prepared(statement).get(...params)
        return row === undefined ? null : decode(location, row)
      }),
    many: (statement, params, decode) =>
      run(() =>
        prepared(statement)
          .all(...params)
          .map((row) => decode(location, row)),
      ),
  }
}
