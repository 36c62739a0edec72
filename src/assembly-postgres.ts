/**
 * One node alone on a PostgreSQL server. It is the only one while it lives: nobody attaches to it, and a node that was there before it and ended
 * without a word is fenced off. Many nodes on one server are a cluster (assembly-cluster.ts).
 */
import { hostname } from "node:os"
import { Effect, type Scope } from "effect"
import type { SessionsService } from "./actors/sessions.ts"
import { buildNode } from "./assembly-services.ts"
import { version } from "./cli/package.ts"
import type { NodeOptions, OpenFailure } from "./cli/ports.ts"
import { prepareSchema } from "./storage/postgres/auto-migrate.ts"
import { ownDatabase } from "./storage/postgres/ownership.ts"
import type { PostgresSettings } from "./storage/postgres/settings.ts"
import { PostgresStore } from "./storage/postgres/store.ts"

/** Owns the database until the scope closes; fails with `DatabaseInUse` where somebody else does. */
export const openOnPostgres = (
  settings: PostgresSettings,
  options: NodeOptions,
): Effect.Effect<SessionsService, OpenFailure, Scope.Scope> =>
  Effect.gen(function* () {
    yield* prepareSchema(settings)
    yield* ownDatabase(settings, { program: options.program, as: "alone" })
    const node = { name: `${hostname()}-${process.pid}`, address: "", version: version() }
    return yield* buildNode(options.db, options, PostgresStore.layer({ settings, node, alone: true }))
  })
