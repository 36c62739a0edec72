/**
 * The connection of a writer. A node has many in its life and at most one that may write: each begins by raising the node's `link`, after
 * which nothing can commit any more that was sent over an older one, and learns what the last group of commits came to.
 */
import { Client } from "pg"
import { sqlState } from "./failures.ts"

/** Milliseconds after which the server gives up a statement, and one that waits for a lock. */
const statementLimit = 5_000
const lockLimit = 2_500
/** Milliseconds without an answer after which the connection counts as lost: longer than the server takes to give up. */
const answerLimit = 8_000
/** Milliseconds in which a connection must come to be. */
export const connectLimit = 3_000

/** Plans never depend on values or on statistics, which are missing while a database is young; a commit is on disk before its answer. */
const session = `SET statement_timeout = ${statementLimit}; SET lock_timeout = ${lockLimit}; SET enable_seqscan = off; SET jit = off;
SET plan_cache_mode = force_generic_plan;
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`

export type SqlRow = Readonly<Record<string, unknown>>

/** How a driver is told to connect; read anew for each connection. */
export type LinkConfig = () => ConstructorParameters<typeof Client>[0]

export interface Link {
  /** Its number among the node's connections; 0 before it is registered. */
  number: number
  /** Null once it is lost. */
  readonly query: (text: string, values: ReadonlyArray<unknown>, name?: string) => Promise<ReadonlyArray<SqlRow>>
  readonly alive: () => boolean
  readonly close: () => Promise<void>
}

/** Opens one; rejects with the driver's errors. */
export const openLink = async (config: LinkConfig): Promise<Link> => {
  const client = new Client(config())
  let alive = true
  const lost = () => {
    alive = false
  }
  client.on("error", lost)
  client.on("end", lost)
  try {
    await client.connect()
    await client.query(session)
  } catch (cause) {
    client.end().catch(() => undefined)
    throw cause
  }
  const query = (text: string, values: ReadonlyArray<unknown>, name?: string): Promise<ReadonlyArray<SqlRow>> =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        alive = false
        reject(Object.assign(new Error("the server does not answer"), { code: "ETIMEDOUT" }))
        // ends the socket, since a statement is under way
        client.end().catch(() => undefined)
      }, answerLimit)
      client.query<SqlRow>({ text, values: [...values], ...(name === undefined ? {} : { name }) }).then(
        ({ rows }) => {
          clearTimeout(timer)
          resolve(rows)
        },
        (cause: unknown) => {
          clearTimeout(timer)
          if (sqlState(cause).startsWith("57P") || sqlState(cause) === "") alive = false
          reject(cause)
        },
      )
    })
  return {
    number: 0,
    query,
    alive: () => alive,
    close: async () => {
      alive = false
      await client.end().catch(() => undefined)
    },
  }
}
