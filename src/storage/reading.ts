/**
 * How reads run, for the SQL engines of the storage port: one statement each, and so one snapshot each. What stands behind it (a prepared
 * statement, a client, a pool) is the engine's.
 */
import { Effect } from "effect"
import type { SqlRow } from "./decode.ts"
import { CorruptRow, type ReadError, type StorageUnavailable } from "./errors.ts"

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

interface Running<Param> {
  readonly location: string
  /** The rows of one statement. */
  readonly rows: (statement: string, params: ReadonlyArray<Param>) => Effect.Effect<Rows, StorageUnavailable>
  /** What it means that something else than `CorruptRow` was thrown over the rows. */
  readonly failure: (location: string, cause: unknown) => StorageUnavailable
  /** A row as it is decoded, where the engine stores it otherwise. */
  readonly row?: (row: SqlRow) => SqlRow
}

/** Reads over a way to run statements that takes time. */
export const readingOver = <Param>({ failure, location, row, rows }: Running<Param>): Reading<Param> => {
  const read: Reading<Param>["read"] = (statement, params, use) =>
    Effect.flatMap(rows(statement, params), (found) =>
      Effect.try({
        try: () => use(found),
        catch: (cause) => (cause instanceof CorruptRow ? cause : failure(location, cause)),
      }),
    )
  const decoded = <A>(decode: Decode<A>, found: SqlRow): A => decode(location, row === undefined ? found : row(found))
  return {
    read,
    one: (statement, params, decode) =>
      read(statement, params, ([first]) => (first === undefined ? null : decoded(decode, first))),
    many: (statement, params, decode) => read(statement, params, (found) => found.map((one) => decoded(decode, one))),
  }
}
