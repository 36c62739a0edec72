/**
 * `super-pi migrate` on a database file: whoever opens one as its owner migrates it, so that is what this does. There is no way down: a copy of
 * the file is the way back.
 */
import { existsSync } from "node:fs"
import { Effect, type Scope } from "effect"
import { claim } from "../storage/sqlite/ownership.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import { openReader } from "../storage/sqlite/reader.ts"
import { schemaVersion } from "../storage/sqlite/schema.ts"
import { makeSqliteStore } from "../storage/sqlite/store.ts"
import type { Invocation } from "./arguments.ts"
import { CommandFailure, ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { ensureDataDir, type Paths } from "./paths.ts"
import type { OpenFailure } from "./ports.ts"

/** The schema version of the file; 0 where there is none. */
const versionOf = (path: string): Effect.Effect<number, OpenFailure> =>
  existsSync(path)
    ? Effect.scoped(Effect.map(openReader(canonicalPathOf(path)), ({ version }) => version))
    : Effect.succeed(0)

const said = (path: string, version: number, was: number, invocation: Invocation): number => {
  const line =
    invocation.get(option.json) === true
      ? JSON.stringify({ database: path, version, newest: schemaVersion, was })
      : `${path}: schema version ${version} of ${schemaVersion}${was === version ? "" : `, was ${was}`}`
  process.stdout.write(`${line}\n`)
  return ExitCode.ok
}

/** Fails where somebody else has the file open: they migrated it. */
export const migrateFile = (
  paths: Paths,
  invocation: Invocation,
): Effect.Effect<number, OpenFailure | CommandFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const path = paths.database
    const to = invocation.get(option.to)
    const was = yield* versionOf(path)
    if (invocation.get(option.migrationStatus) === true) return said(path, was, was, invocation)
    if (to !== undefined && to !== schemaVersion) {
      const why = to < schemaVersion ? "a database file goes up only: keep a copy of it to go back" : "update super-pi"
      return yield* Effect.fail(new CommandFailure(`--to: expected ${schemaVersion}, got ${to}; ${why}`))
    }
    ensureDataDir(paths)
    if (was !== schemaVersion) {
      yield* Effect.scoped(
        Effect.flatMap(claim(path, { program: "super-pi migrate" }), (lease) => makeSqliteStore({ path: lease.path })),
      )
    }
    return said(path, yield* versionOf(path), was, invocation)
  })
