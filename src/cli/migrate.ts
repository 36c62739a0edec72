/**
 * `super-pi migrate`: takes the schema of the database to a version, or says which it has. A server's is changed step by step, up and down; a
 * file is migrated by whoever opens it, and only up.
 */
import { Effect } from "effect"
import type { MigrationStep, SchemaStatus } from "../storage/postgres/migrations.ts"
import { locationOf, type PostgresSettings } from "../storage/postgres/settings.ts"
import type { Invocation } from "./arguments.ts"
import { pathsOf } from "./context.ts"
import { ExitCode } from "./exit.ts"
import * as option from "./options.ts"
import { runCommand } from "./runtime.ts"
import { serverOf } from "./server.ts"

const print = (line: string): void => void process.stdout.write(`${line}\n`)

const stepLine = ({ direction, name, version }: MigrationStep): string => `${direction}    ${version}  ${name}`

const statusLines = (location: string, { applied, newest, pending, version }: SchemaStatus): ReadonlyArray<string> => [
  `${location}: schema version ${version} of ${newest}`,
  ...applied.map((one) => `applied  ${one.version}  ${one.name}  ${new Date(one.appliedAt).toISOString()}`),
  ...pending.map((one) => `pending  ${one.version}  ${one.name}`),
]

const migrateServer = (settings: PostgresSettings, invocation: Invocation) =>
  Effect.gen(function* () {
    const { migrate, schemaStatus } = yield* Effect.promise(() => import("../storage/postgres/migrations.ts"))
    const location = locationOf(settings)
    const json = invocation.get(option.json) === true
    if (invocation.get(option.migrationStatus) === true) {
      const status = yield* schemaStatus(settings)
      if (json) print(JSON.stringify({ database: location, ...status }))
      else for (const line of statusLines(location, status)) print(line)
      return ExitCode.ok
    }
    const to = invocation.get(option.to)
    const steps = yield* migrate(settings, {
      ...(to === undefined ? {} : { to }),
      force: invocation.get(option.force) === true,
      onWait: Effect.sync(() => process.stderr.write("another process changes the schema: waiting\n")),
      onStep: (step) => Effect.sync(() => json || print(stepLine(step))).pipe(Effect.asVoid),
    })
    const { newest, version } = yield* schemaStatus(settings)
    if (json) print(JSON.stringify({ database: location, version, newest, steps }))
    else print(`${location}: schema version ${version} of ${newest}${steps.length === 0 ? ", nothing to do" : ""}`)
    return ExitCode.ok
  })

export const main = async (invocation: Invocation): Promise<number> => {
  const paths = pathsOf(invocation)
  const settings = serverOf(paths, process.env)
  return runCommand(() =>
    settings === null
      ? Effect.flatMap(
          Effect.promise(() => import("./migrate-file.ts")),
          ({ migrateFile }) => migrateFile(paths, invocation),
        )
      : migrateServer(settings, invocation),
  )
}
