/**
 * The parts of the program that commands need, each loaded when it is first asked for.
 */
import { existsSync } from "node:fs"
import { Effect, Either, type Scope } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { OpenError } from "../storage/errors.ts"
import type { PostgresSettings } from "../storage/postgres/settings.ts"
import type { StoreReads } from "../storage/store.ts"
import { CommandFailure } from "./exit.ts"
import type { Paths } from "./paths.ts"
import type { OpenFailure, OpenNode, OpenSessions } from "./ports.ts"
import { serverNamed } from "./server.ts"

export const openSessions: OpenSessions = (options) =>
  Effect.flatMap(
    Effect.promise(() => import("../assembly.ts")),
    (assembly) => assembly.openSessions(options),
  )

export const openNode: OpenNode = (options) =>
  Effect.flatMap(
    Effect.promise(() => import("../assembly-node.ts")),
    (assembly) => assembly.openNode(options),
  )

/**
 * The sessions of the process that owns the database, which stays the owner; null where nobody does. Null on a server as well: there nobody is
 * attached to.
 */
export const attachSessions = (
  paths: Paths,
  program: string,
): Effect.Effect<SessionsService | null, OpenFailure | CommandFailure, Scope.Scope> =>
  Effect.flatMap(serverNamed(paths), (server) =>
    server !== null
      ? Effect.succeed(null)
      : Effect.flatMap(
          Effect.promise(() => import("../assembly.ts")),
          (assembly) => assembly.attachSessions({ db: paths.database, program }),
        ),
  )

/** Null where nothing was ever written there. */
const openServerReader = (settings: PostgresSettings): Effect.Effect<StoreReads | null, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const { makePostgresReader } = yield* Effect.promise(() => import("../storage/postgres/store.ts"))
    const opened = yield* Effect.either(makePostgresReader({ settings }))
    if (Either.isRight(opened)) return opened.right
    const { schemaStatus } = yield* Effect.promise(() => import("../storage/postgres/migrations.ts"))
    const { version } = yield* Effect.mapError(schemaStatus(settings), () => opened.left)
    return version === 0 ? null : yield* opened.left
  })

/** Reads the database beside whoever owns it. Null when there is none yet at the default place; a named one must exist. */
export const openReader = (paths: Paths): Effect.Effect<StoreReads | null, OpenError | CommandFailure, Scope.Scope> =>
  Effect.flatMap(
    serverNamed(paths),
    (server): Effect.Effect<StoreReads | null, OpenError | CommandFailure, Scope.Scope> => {
      if (server !== null) return openServerReader(server)
      if (!existsSync(paths.database)) {
        if (!paths.databaseNamed) return Effect.succeed(null)
        return Effect.fail(
          new CommandFailure(`there is no database at ${paths.database}; check --db and SUPER_PI_SQLITE_PATH`),
        )
      }
      return Effect.flatMap(
        Effect.promise(() => import("../storage/sqlite/store.ts")),
        ({ makeSqliteReader }) => makeSqliteReader({ path: paths.database }),
      )
    },
  )
