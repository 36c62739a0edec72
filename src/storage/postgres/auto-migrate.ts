/**
 * What a node does about migrations before it opens the database.
 */
import { Effect } from "effect"
import type { OpenError } from "../errors.ts"
import { migrate, schemaStatus } from "./migrations.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** Applies the migrations that are pending where the settings allow it; else the store says that they are. Safe for many at once. */
export const prepareSchema = (settings: PostgresSettings): Effect.Effect<void, OpenError> => {
  if (!settings.autoMigrate) return Effect.void
  const onStep = ({ name, version }: { readonly name: string; readonly version: number }) =>
    Effect.logInfo(`${locationOf(settings)}: schema version ${version} (${name})`)
  return Effect.flatMap(schemaStatus(settings), ({ pending }) =>
    pending.length === 0
      ? Effect.void
      : // only versions that somebody names are refused
        Effect.asVoid(Effect.catchTag(migrate(settings, { onStep }), "MigrationRefused", Effect.die)),
  )
}
