/**
 * Runs reads through the stock SQL client.
 */
import { Effect } from "effect"
import type { StorageUnavailable } from "../errors.ts"
import { type Reading, type Rows, readingOver, type Scalar } from "../reading.ts"
import type { Client } from "./client.ts"
import { closed, unavailable } from "./failures.ts"

/** `client` is asked for by every read, and may open the connection. */
export const clientReading = (client: Effect.Effect<Client, StorageUnavailable>, location: string): Reading => {
  const rows = (statement: string, params: ReadonlyArray<Scalar>): Effect.Effect<Rows, StorageUnavailable> =>
    Effect.flatMap(client, (opened) =>
      Effect.suspend(() =>
        opened.isOpen()
          ? Effect.mapError(opened.rows(statement, params), (cause) =>
              opened.isOpen() ? unavailable(location, cause) : closed(location),
            )
          : closed(location),
      ),
    )
  return readingOver({ location, rows, failure: unavailable })
}
