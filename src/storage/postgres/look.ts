/**
 * A look at a database for people: over one connection, and changing nothing.
 */
import { Effect } from "effect"
import type { OpenError } from "../errors.ts"
import { attempt, openClient } from "./client.ts"
import { type Holder, readHolders } from "./ownership.ts"
import { schemaVersion } from "./schema.ts"
import { readApplied, versionOf } from "./schema-version.ts"
import { readServer, type ServerFacts } from "./server.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

export interface DatabaseLook {
  readonly server: ServerFacts
  /** The version of its schema, 0 where it is empty, and that of this program. */
  readonly version: number
  readonly newest: number
  /** Who works on it. */
  readonly holders: ReadonlyArray<Holder>
}

export const lookAt = (settings: PostgresSettings): Effect.Effect<DatabaseLook, OpenError> =>
  Effect.scoped(
    Effect.flatMap(openClient(settings, { applicationName: "super-pi doctor" }), (client) => {
      const location = locationOf(settings)
      return attempt(location, async () => ({
        server: await readServer(location, client),
        version: versionOf(await readApplied(location, client)),
        newest: schemaVersion,
        holders: await readHolders(client),
      }))
    }),
  )
