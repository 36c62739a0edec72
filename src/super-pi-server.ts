/**
 * A PostgreSQL server's database as the storage of `SuperPi.layer`: owned alone while the layer lives.
 */
import { hostname } from "node:os"
import { Effect, Either, Layer } from "effect"
import { version } from "./cli/package.ts"
import type { InvalidSetting } from "./domain/invalid-setting.ts"
import type { OpenError } from "./storage/errors.ts"
import type { DatabaseInUse } from "./storage/postgres/ownership.ts"
import { type PostgresSettings, settingsOfUrl } from "./storage/postgres/settings.ts"
import type { Store } from "./storage/store.ts"

/** A database of a server that this process owns while the layer lives; see docs/postgres.md. */
export type DatabaseServer =
  | {
      /** `postgresql://user:password@host:port/database`; `sslmode`, `sslrootcert` and their kind count. */
      readonly url: string
    }
  | {
      /** All settings, for example those of `postgresSettings(process.env)`. */
      readonly postgres: PostgresSettings
    }

export const serverSettingsOf = (server: DatabaseServer): Either.Either<PostgresSettings, InvalidSetting> =>
  "url" in server ? settingsOfUrl(server.url) : Either.right(server.postgres)

/** Migrates where the settings allow it, owns the database, and opens the engine. The driver is loaded here. */
export const serverStore = (
  settings: PostgresSettings,
  { node, program }: { readonly node: string | undefined; readonly program: string },
): Layer.Layer<Store, DatabaseInUse | OpenError> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const { prepareSchema } = yield* Effect.promise(() => import("./storage/postgres/auto-migrate.ts"))
      const { ownDatabase } = yield* Effect.promise(() => import("./storage/postgres/ownership.ts"))
      const { PostgresStore } = yield* Effect.promise(() => import("./storage/postgres/store.ts"))
      yield* prepareSchema(settings)
      yield* ownDatabase(settings, { program, as: "alone" })
      const name = node ?? `${hostname()}-${process.pid}`
      return PostgresStore.layer({ settings, node: { name, address: "", version: version() }, alone: true })
    }),
  )
