/**
 * Advisory locks of the whole database, by their two numbers. Those of shards have one number (`roster.ts`), so that they never meet.
 */

/** The first number of all of them: "SuPi". */
export const lockClass = 0x53755069

/** Whoever changes the schema. */
export const migrationLock = 1

/** Who works on the database: one node alone, or the nodes of a cluster together (`ownership.ts`). */
export const ownerLock = 2
