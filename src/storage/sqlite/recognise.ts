/**
 * Tells our databases from others by what one statement says of a file. Pure; throws.
 */
import { errorCode } from "../../domain/error-code.ts"
import type { SqlRow } from "../decode.ts"
import { ForeignDatabase, NewerDatabase } from "../errors.ts"
import { reported } from "./failures.ts"
import { applicationId, schemaVersion } from "./schema.ts"

/** Only reads, so a foreign or newer database stays as it is. */
export const identityStatement =
  "SELECT (SELECT application_id FROM pragma_application_id) AS application, (SELECT user_version FROM pragma_user_version) AS version, (SELECT count(*) FROM sqlite_schema) AS tables"

const foreign = (location: string, detail: string) => new ForeignDatabase({ location, detail })

/** The schema version of the file whose row of {@link identityStatement} is given; null where there is nothing in it yet. Throws unless it is ours and known. */
export const recognise = (location: string, row: SqlRow | undefined): number | null => {
  const [application, version] = [Number(row?.application), Number(row?.version)]
  if (application === applicationId) {
    if (version > schemaVersion) throw new NewerDatabase({ location, found: version, supported: schemaVersion })
    return version
  }
  if (application !== 0) throw foreign(location, `its application id is 0x${(application >>> 0).toString(16)}`)
  if (row?.tables !== 0 || version !== 0) throw foreign(location, "it holds tables of another program")
  return null
}

/** What it means that the statement failed: the failure itself, unless the file is no database at all. */
export const unrecognised = (location: string, cause: unknown): unknown =>
  errorCode(reported(cause)) === "SQLITE_NOTADB" ? foreign(location, "it is not a SQLite file") : cause
