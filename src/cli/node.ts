/**
 * The parts of the program that commands need, each loaded when it is first asked for.
 */
import { existsSync } from "node:fs"
import { Effect, type Scope } from "effect"
import type { OpenError } from "../storage/errors.ts"
import type { StoreReads } from "../storage/store.ts"
import { CommandFailure } from "./exit.ts"
import type { Paths } from "./paths.ts"
import type { AttachSessions, OpenNode, OpenSessions } from "./ports.ts"

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

export const attachSessions: AttachSessions = (options) =>
  Effect.flatMap(
    Effect.promise(() => import("../assembly.ts")),
    (assembly) => assembly.attachSessions(options),
  )

/** Reads the database beside whoever owns it. Null when there is none yet at the default place; a named one must exist. */
export const openReader = (paths: Paths): Effect.Effect<StoreReads | null, OpenError | CommandFailure, Scope.Scope> =>
  Effect.suspend((): Effect.Effect<StoreReads | null, OpenError | CommandFailure, Scope.Scope> => {
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
  })
