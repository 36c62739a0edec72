/**
 * Which database a command works on: the server that the environment names, or a file. `--db` names a file, whatever the environment says.
 */
import { Effect, Either } from "effect"
import { type PostgresSettings, serverSettings } from "../storage/postgres/settings.ts"
import { CommandFailure } from "./exit.ts"
import type { Paths } from "./paths.ts"

type Env = Readonly<Record<string, string | undefined>>

const serverEither = (
  { databaseFlag }: Pick<Paths, "databaseFlag">,
  env: Env,
): Either.Either<PostgresSettings | null, CommandFailure> =>
  databaseFlag
    ? Either.right(null)
    : Either.mapLeft(serverSettings(env), (fault) => new CommandFailure(fault.message, undefined, { cause: fault }))

/**
 * The server, or null: the database is the file of `paths`.
 *
 * @throws CommandFailure where a variable says what cannot be.
 */
export const serverOf = (paths: Pick<Paths, "databaseFlag">, env: Env): PostgresSettings | null =>
  Either.getOrThrowWith(serverEither(paths, env), (fault) => fault)

/** {@link serverOf} as an effect, for the environment of this process. */
export const serverNamed = (
  paths: Pick<Paths, "databaseFlag">,
): Effect.Effect<PostgresSettings | null, CommandFailure> => Effect.suspend(() => serverEither(paths, process.env))
