/**
 * One connection of one's own: for what needs a session that nobody shares, or that must not wait for the pool.
 */
import { Effect, type Scope } from "effect"
import { Client } from "pg"
import type { OpenError } from "../errors.ts"
import { type ConnectionOptionsOf, clientConfig } from "./client-config.ts"
import { openFailure } from "./failures.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** Runs one step at the server; what it rejects with becomes an {@link OpenError}. */
export const attempt = <A>(location: string, body: () => Promise<A>): Effect.Effect<A, OpenError> =>
  Effect.tryPromise({ try: body, catch: (cause) => openFailure(location, cause) })

/** An open connection, closed with the scope. Its later loss is only seen by its next use, or by its `end` event. */
export const openClient = (
  settings: PostgresSettings,
  options: ConnectionOptionsOf,
): Effect.Effect<Client, OpenError, Scope.Scope> =>
  Effect.acquireRelease(
    attempt(locationOf(settings), async () => {
      const client = new Client(clientConfig(settings, options))
      client.on("error", () => undefined)
      try {
        await client.connect()
        return client
      } catch (cause) {
        await client.end().catch(() => undefined)
        throw cause
      }
    }),
    (client) => Effect.promise(() => client.end().catch(() => undefined)),
  )
