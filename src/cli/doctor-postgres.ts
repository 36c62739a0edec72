/**
 * Checks of a database on a server: whether it answers, how it is reached, which schema it has, and who works on it.
 */
import { Effect } from "effect"
import { lookAt } from "../storage/postgres/look.ts"
import { locationOf, type PostgresSettings } from "../storage/postgres/settings.ts"
import { type Check, fail, ok, warn } from "./check.ts"

const tlsWords = ({ tls }: PostgresSettings, protocol: string | null): string => {
  if (protocol === null) return "not encrypted"
  const checked = tls.mode === "require" ? "certificate not checked" : tls.mode
  return `${protocol}, ${checked}`
}

/** Only the machine itself is reached without a network. */
const isHere = ({ host }: PostgresSettings): boolean =>
  host.startsWith("/") || host === "localhost" || host === "::1" || host.startsWith("127.")

const connection = (settings: PostgresSettings, protocol: string | null): Check => {
  const words = `${tlsWords(settings, protocol)}; pool of ${settings.poolSize}`
  return protocol === null && !isHere(settings)
    ? warn("connection", words, "set SUPER_PI_DB_SSL=verify-full, what is written can be read on the way")
    : ok("connection", words)
}

export const checkServer = (settings: PostgresSettings): Effect.Effect<ReadonlyArray<Check>> => {
  const look = Effect.gen(function* () {
    const location = locationOf(settings)
    const { holders, newest, server, version } = yield* lookAt(settings)
    const owners = holders.map(({ name, since }) => `${name} since ${new Date(since).toISOString()}`)
    const schema = `${location}, PostgreSQL ${server.version}, schema version ${version}`
    return [
      version === newest ? ok("database", schema) : warn("database", `${schema} of ${newest}`, "run super-pi migrate"),
      connection(settings, server.tls),
      ok("owner", owners.length === 0 ? "nobody works on the database at the moment" : owners.join(", ")),
    ]
  })
  return Effect.catchAll(look, ({ message }) =>
    Effect.succeed([fail("database", message, "super-pi doctor --db PATH checks a file instead")]),
  )
}
