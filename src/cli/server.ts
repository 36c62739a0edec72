/**
 * Which database a command works on: the server that the environment names, or a file. `--db` names a file, whatever the environment says.
 */
import { Either } from "effect"
import { type PostgresSettings, serverSettings } from "../storage/postgres/settings.ts"
import { CommandFailure } from "./exit.ts"
import type { Paths } from "./paths.ts"

type Env = Readonly<Record<string, string | undefined>>

/**
 * The server, or null: the database is the file of `paths`.
 *
 * @throws CommandFailure where a variable says what cannot be.
 */
export const serverOf = ({ databaseFlag }: Pick<Paths, "databaseFlag">, env: Env): PostgresSettings | null =>
  databaseFlag
    ? null
    : Either.getOrThrowWith(
        serverSettings(env),
        (fault) => new CommandFailure(fault.message, undefined, { cause: fault }),
      )
