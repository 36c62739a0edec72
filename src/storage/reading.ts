/**
 * How reads run, for the SQL engines of the storage port: one statement each, and so one snapshot each. What stands behind it (a prepared
 * statement, a client, a pool) is the engine's.
 */
import type { Effect } from "effect"
import type { SqlRow } from "./decode.ts"
import type { ReadError } from "./errors.ts"

/** What every engine takes as a parameter. */
export type Scalar = number | string | null
export type Rows = ReadonlyArray<SqlRow>
/** Turns a row into a record; throws `CorruptRow`. */
export type Decode<A> = (location: string, row: SqlRow) => A

export interface Reading<Param = Scalar> {
  /** Runs a statement, and turns its rows into what the read gives; `use` may throw `CorruptRow`. */
  readonly read: <A>(
    statement: string,
    params: ReadonlyArray<Param>,
    use: (rows: Rows) => A,
  ) => Effect.Effect<A, ReadError>
  /** The first row; null where there is none. */
  readonly one: <A>(
    statement: string,
    params: ReadonlyArray<Param>,
    decode: Decode<A>,
  ) => Effect.Effect<A | null, ReadError>
  readonly many: <A>(
    statement: string,
    params: ReadonlyArray<Param>,
    decode: Decode<A>,
  ) => Effect.Effect<ReadonlyArray<A>, ReadError>
}
