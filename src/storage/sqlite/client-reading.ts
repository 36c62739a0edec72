/**
 * Runs reads through the stock SQL client.
 */
import { Effect } from "effect"
import { CorruptRow, type StorageUnavailable } from "../errors.ts"
import type { Reading, Rows, Scalar } from "../reading.ts"
import type { Client } from "./client.ts"
import { closed, unavailable } from "./failures.ts"

/** `client` is asked for by every read, and may open the connection. */
export const clientReading = (client: Effect.Effect<Client, StorageUnavailable>, location: string): Reading => {
  const rowsOf = (statement: string, params: ReadonlyArray<Scalar>): Effect.Effect<Rows, StorageUnavailable> =>
    Effect.flatMap(client, ({ isOpen, rows }) =>
      Effect.suspend(() =>
        isOpen()
          ? Effect.mapError(rows(statement, params), (cause) =>
              isOpen() ? unavailable(location, cause) : closed(location),
            )
          : closed(location),
      ),
    )
  const read: Reading["read"] = (statement, params, use) =>
    Effect.flatMap(rowsOf(statement, params), (rows) =>
      Effect.try({
        try: () => use(rows),
        catch: (cause) => (cause instanceof CorruptRow ? cause : unavailable(location, cause)),
      }),
    )
  return {
    read,
    one: (statement, params, decode) =>
      read(statement, params, ([row]) => (row === undefined ? null : decode(location, row))),
    many: (statement, params, decode) => read(statement, params, (rows) => rows.map((row) => decode(location, row))),
  }
}
