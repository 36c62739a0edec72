/**
 * What a database holds, by its table `schema_migrations`: a row for each migration that was applied, written in its transaction. Reads only.
 */
import type { ClientBase } from "pg"
import { ForeignDatabase, NewerDatabase, StorageUnavailable } from "../errors.ts"
import { type Migration, migrations as published } from "./schema.ts"

/** A migration that was applied, in milliseconds since the epoch. */
export interface AppliedMigration {
  readonly version: number
  readonly name: string
  readonly appliedAt: number
}

/** The newest applied version; 0: none. */
export const versionOf = (applied: ReadonlyArray<AppliedMigration>): number => applied.at(-1)?.version ?? 0

const tables = `SELECT c.relname::text AS name FROM pg_class c
  WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
  ORDER BY c.relname LIMIT 50`

const columns = `SELECT attname::text AS name FROM pg_attribute
  WHERE attrelid = 'schema_migrations'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`

// as numbers, whatever the connection makes of bigint
const rows = `SELECT version::float8 AS version, name, applied_at::float8 AS "appliedAt" FROM schema_migrations ORDER BY version`

type Queries = Pick<ClientBase, "query">

const names = async (client: Queries, sql: string): Promise<ReadonlyArray<string>> =>
  (await client.query<{ name: string }>(sql)).rows.map(({ name }) => name)

const foreign = (location: string, detail: string) => new ForeignDatabase({ location, detail })

/**
 * The migrations that were applied, oldest first; empty for an empty database.
 *
 * Rejects with `ForeignDatabase` where others have tables there, and with `NewerDatabase` where a newer program was.
 */
export const readApplied = async (
  location: string,
  client: Queries,
  migrations: ReadonlyArray<Migration> = published,
): Promise<ReadonlyArray<AppliedMigration>> => {
  const found = await names(client, tables)
  if (!found.includes("schema_migrations")) {
    if (found.length === 0) return []
    throw foreign(location, `it has tables of others, like ${found.slice(0, 3).join(", ")}`)
  }
  if ((await names(client, columns)).join() !== "version,name,applied_at") {
    throw foreign(location, "its table schema_migrations belongs to another program")
  }
  const applied = (await client.query<AppliedMigration>(rows)).rows
  const supported = migrations.length
  const version = versionOf(applied)
  const other = applied.find((row) => row.version <= supported && migrations[row.version - 1]?.name !== row.name)
  if (other !== undefined) throw foreign(location, `its migration ${other.version} is called "${other.name}"`)
  if (version > supported) throw new NewerDatabase({ location, found: version, supported })
  return applied
}

/** For whoever opens the database: rejects like {@link readApplied}, and with `StorageUnavailable` where migrations are pending. */
export const requireSchema = async (location: string, client: Queries): Promise<void> => {
  const version = versionOf(await readApplied(location, client))
  const needed = published.length
  if (version === needed) return
  throw new StorageUnavailable({
    location,
    cause: `its schema has version ${version}, this program needs ${needed}`,
    advice: "Run `super-pi migrate`",
  })
}
