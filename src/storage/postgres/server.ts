/**
 * What a server says of itself to whoever connected.
 */
import type { ClientBase } from "pg"
import { StorageUnavailable } from "../errors.ts"

export interface ServerFacts {
  /** For people: `18.4`. */
  readonly version: string
  /** Protocol of the encryption, like `TLSv1.3`; null: none. */
  readonly tls: string | null
}

/** The oldest major version that has all that is used (`idle_session_timeout`). */
const oldest = 14

const facts = `SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS number,
  (SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid() AND ssl) AS tls`

/** Rejects with `StorageUnavailable` where the server is too old. */
export const readServer = async (location: string, client: ClientBase): Promise<ServerFacts> => {
  const { rows } = await client.query<{ version: string; number: number; tls: string | null }>(facts)
  const { number = 0, tls = null, version = "unknown" } = rows[0] ?? {}
  if (number >= oldest * 10_000) return { version, tls }
  throw new StorageUnavailable({
    location,
    cause: `the server is PostgreSQL ${version}`,
    advice: `Use PostgreSQL ${oldest} or newer`,
  })
}
