/**
 * What the database of a cluster holds, read beside its nodes: who holds what, how far conversations are, and every row at the end.
 */
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import type { SqlClient } from "@effect/sql/SqlClient"
import { fromPool } from "@effect/sql-pg/PgClient"
import { Effect, type Scope } from "effect"
import pg from "pg"
import { type RosterNode, readRoster } from "../../../src/storage/postgres/roster.ts"
import { decodeWorld, type World } from "../../../stress/database.ts"
import { pause } from "./until.ts"

/** Type 20 is bigint: numbers here are small enough. */
const types: pg.CustomTypesConfig = {
  getTypeParser: (id: number, format?: "text" | "binary") =>
    id === 20 ? Number : format === "binary" ? pg.types.getTypeParser(id, format) : pg.types.getTypeParser(id, "text"),
}

export interface Progress {
  readonly conversation: number
  /** Epoch of the node that took it last. */
  readonly epoch: number
  /** The last commit that wrote anything of it. */
  readonly seq: number
}

const progress = `SELECT c.id AS conversation, c.token_epoch AS epoch, greatest(c.seq,
    (SELECT max(seq) FROM entries WHERE conversation = c.id),
    (SELECT max(seq) FROM tasks WHERE conversation = c.id),
    (SELECT max(seq) FROM submissions WHERE conversation = c.id)) AS seq
  FROM conversations c WHERE c.id = ANY($1::bigint[])`

export class Database {
  readonly #pool: pg.Pool
  readonly #sql: SqlClient

  private constructor(pool: pg.Pool, sql: SqlClient) {
    this.#pool = pool
    this.#sql = sql
  }

  static open(url: string): Effect.Effect<Database, never, Scope.Scope> {
    const acquire = Effect.acquireRelease(
      Effect.sync(() => {
        const pool = new pg.Pool({ connectionString: url, max: 3, types, idleTimeoutMillis: 0 })
        pool.on("error", () => undefined)
        pool.on("connect", (client) => client.on("error", () => undefined))
        return pool
      }),
      (pool) => Effect.promise(() => pool.end()),
    )
    return Effect.gen(function* () {
      const pool = yield* acquire
      const sql = yield* fromPool({ acquire: Effect.succeed(pool) }).pipe(Effect.provide(reactivityLayer), Effect.orDie)
      return new Database(pool, sql)
    })
  }

  /** Rows of a statement that only reads; asked again while the server is away. */
  async rows<Row extends object>(statement: string, parameters: ReadonlyArray<unknown> = []): Promise<Array<Row>> {
    for (let attempts = 1; ; attempts++) {
      try {
        return (await this.#pool.query<Row & pg.QueryResultRow>(statement, [...parameters])).rows
      } catch (error) {
        if (attempts >= 200) throw error
        await pause(50)
      }
    }
  }

  /** Nodes that registered and have not left; none before the first node made the tables, or while the server is away. */
  async roster(): Promise<ReadonlyArray<RosterNode>> {
    return await Effect.runPromise(Effect.orElseSucceed(readRoster(this.#sql), () => []))
  }

  progress(conversations: ReadonlyArray<number>): Promise<Array<Progress>> {
    return this.rows<Progress>(progress, [conversations])
  }

  /** The last commit of each conversation that a node still has; 0 where another one took it already. */
  async marks(conversations: ReadonlyArray<number>, epoch: number): Promise<ReadonlyMap<number, number>> {
    const found = await this.progress(conversations)
    return new Map(found.map((one) => [one.conversation, one.epoch === epoch ? one.seq : 0]))
  }

  /** Every row. */
  async world(): Promise<World> {
    const table = (name: string) => this.rows<Record<string, unknown>>(`SELECT * FROM ${name} ORDER BY id`)
    const [conversations, entries, tasks, submissions] = await Promise.all(
      ["conversations", "entries", "tasks", "submissions"].map(table),
    )
    return decodeWorld({
      damage: [],
      conversations: conversations ?? [],
      entries: entries ?? [],
      tasks: tasks ?? [],
      submissions: submissions ?? [],
      seq: Number.MAX_SAFE_INTEGER,
    })
  }
}
