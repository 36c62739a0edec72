/**
 * Finds a pooler in transaction mode between this node and its server. There, one connection of ours means another session of the server in
 * each transaction: prepared statements, advisory locks and settings would be lost or somebody else's. Two connections are asked in turn which
 * session they have; without such a pooler the answers never change and are never the same.
 */
import type { ClientBase } from "pg"
import { StorageUnavailable } from "../errors.ts"

const session = async (client: ClientBase): Promise<number> =>
  (await client.query<{ pid: number }>("SELECT pg_backend_pid() AS pid")).rows[0]?.pid ?? 0

/** Poolers that take turns among their connections may give the same one twice by chance. */
const rounds = 3

/** True where the connections do not keep their sessions. */
const wanders = async (one: ClientBase, other: ClientBase): Promise<boolean> => {
  for (let round = 0; round < rounds; round++) {
    const before = await session(one)
    // holds on to a session, which would be the one that the other just gave back
    await other.query("BEGIN")
    try {
      if ((await session(other)) === before) return true
      if ((await session(one)) !== before) return true
    } finally {
      await other.query("COMMIT")
    }
  }
  return false
}

/** What a pooler in statement mode says to BEGIN. */
const isStatementMode = (cause: unknown): boolean =>
  cause instanceof Error && /statement pooling mode/i.test(cause.message)

/** Rejects with {@link StorageUnavailable} where the sessions of two connections wander. */
export const refusePooler = async (location: string, one: ClientBase, other: ClientBase): Promise<void> => {
  const found = await wanders(one, other).catch((cause) => {
    if (isStatementMode(cause)) return true
    throw cause
  })
  if (!found) return
  throw new StorageUnavailable({
    location,
    cause: "a pooler in transaction mode stands before the server: sessions change between transactions",
    advice:
      "Connect directly to PostgreSQL, or set pool_mode=session in the pooler (another port at many hosting services)",
  })
}
