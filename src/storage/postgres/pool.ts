/**
 * The connections that reads share. Opening asks the server for its version and refuses poolers that do not keep sessions; connections that break are
 * replaced by the next use. Where waits for a connection stay long, some are refused instead of all being late (`shedding.ts`).
 */
import { layer as reactivityLayer } from "@effect/experimental/Reactivity"
import { fromPool, type PgClient } from "@effect/sql-pg/PgClient"
import { Effect, type Scope } from "effect"
import { Client, Pool, type PoolClient, type PoolConfig } from "pg"
import { type OpenError, StorageUnavailable } from "../errors.ts"
import { clientConfig } from "./client-config.ts"
import { openFailure } from "./failures.ts"
import { refusePooler } from "./pooler.ts"
import { readServer, type ServerFacts } from "./server.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"
import { type QueueTimes, WaitJudge } from "./shedding.ts"

/** Milliseconds after which a connection that nobody uses is closed. */
const idleMs = 60_000
/** How long closing waits for statements at work, in milliseconds. */
const closeMs = 2_000

type Taken = (
  error: Error | undefined,
  client: PoolClient | undefined,
  release: (error?: Error | boolean) => void,
) => void

interface Waiter {
  readonly since: number
  readonly refuse: (error: Error) => void
}

/** A pool that refuses whoever has waited for too long while everybody waits for long. */
class SheddingPool extends Pool {
  readonly #location: string
  readonly #times: QueueTimes
  readonly #judge: WaitJudge
  /** In the order in which they came. */
  readonly #waiters = new Set<Waiter>()
  #timer: NodeJS.Timeout | null = null
  #servedAt = 0

  constructor(config: PoolConfig, location: string, times: QueueTimes) {
    super(config)
    this.#location = location
    this.#times = times
    this.#judge = new WaitJudge(times, performance.now())
  }

  override connect(): Promise<PoolClient>
  override connect(taken: Taken): void
  override connect(taken?: Taken): Promise<PoolClient> | undefined {
    if (taken !== undefined) return this.#take(taken)
    return new Promise((resolve, reject) =>
      this.#take((error, client) => (client === undefined ? reject(error) : resolve(client))),
    )
  }

  #take(taken: Taken): undefined {
    const queues = this.idleCount === 0 && this.totalCount >= (this.options.max ?? 1)
    if (!queues && this.waitingCount === 0) {
      super.connect((error, client, release) => taken(error, client, release))
      return
    }
    const since = performance.now()
    let open = true
    const waiter: Waiter = {
      since,
      refuse: (error) => {
        open = false
        taken(error, undefined, () => undefined)
      },
    }
    this.#waiters.add(waiter)
    this.#watch()
    super.connect((error, client, release) => {
      this.#waiters.delete(waiter)
      if (!open) {
        // whoever waited was refused meanwhile: the next one's turn
        if (client !== undefined) release()
        return
      }
      const now = performance.now()
      this.#servedAt = now
      this.#judge.served(now, now - since)
      taken(error, client, release)
      this.#shed(now)
    })
  }

  #shed(now: number): void {
    const limit = this.#judge.limit(now)
    if (limit === null) return
    for (const waiter of this.#waiters) {
      if (now - waiter.since <= limit) return
      this.#waiters.delete(waiter)
      waiter.refuse(
        new StorageUnavailable({
          location: this.#location,
          cause: `no connection became free within ${Math.round(now - waiter.since)} ms, and for a while nobody waited less than ${this.#times.targetMs} ms`,
          advice: "Try again later; raise POOL_SIZE or SUPER_PI_DB_QUEUE_TARGET",
        }),
      )
    }
  }

  /** Looks once per interval while somebody waits: nobody may be served for long. */
  #watch(): void {
    if (this.#timer !== null) return
    this.#timer = setTimeout(() => {
      this.#timer = null
      const [first] = this.#waiters
      if (first === undefined) return
      const now = performance.now()
      if (now - this.#servedAt >= this.#times.intervalMs) this.#judge.stuck(now, now - first.since)
      this.#shed(now)
      this.#watch()
    }, this.#times.intervalMs)
    this.#timer.unref()
  }
}

const attempt = <A>(location: string, body: () => Promise<A>): Effect.Effect<A, OpenError> =>
  Effect.tryPromise({ try: body, catch: (cause) => openFailure(location, cause) })

/** Asks what the server is, over two connections; the first stays in the pool. */
const check = async (pool: Pool, settings: PostgresSettings, applicationName: string): Promise<ServerFacts> => {
  const location = locationOf(settings)
  const one = await pool.connect()
  try {
    const server = await readServer(location, one)
    const other = new Client(clientConfig(settings, { applicationName }))
    other.on("error", () => undefined)
    try {
      await other.connect()
      await refusePooler(location, one, other)
    } finally {
      await other.end().catch(() => undefined)
    }
    one.release()
    return server
  } catch (cause) {
    one.release(true)
    throw cause
  }
}

const close = (pool: Pool): Effect.Effect<void> =>
  Effect.promise(() => {
    const late = new Promise<void>((resolve) => setTimeout(resolve, closeMs).unref())
    return Promise.race([pool.end().catch(() => undefined), late])
  })

export interface PostgresPool {
  readonly location: string
  readonly server: ServerFacts
  readonly pool: Pool
  /** `@effect/sql` over the pool. */
  readonly sql: PgClient
}

/** Opens the pool of a node. `applicationName` is what `pg_stat_activity` says who this is. */
export const openPool = (
  settings: PostgresSettings,
  { applicationName }: { readonly applicationName: string },
): Effect.Effect<PostgresPool, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const location = locationOf(settings)
    const { poolSize, queueIntervalMs: intervalMs, queueTargetMs: targetMs } = settings
    const pool = yield* Effect.acquireRelease(
      attempt(location, async () => {
        const config = { ...clientConfig(settings, { applicationName }), max: poolSize, idleTimeoutMillis: idleMs }
        const made = new SheddingPool(config, location, { targetMs, intervalMs })
        // a connection that breaks while nobody uses it is replaced by the next use
        made.on("error", () => undefined)
        return made
      }),
      close,
    )
    const server = yield* attempt(location, () => check(pool, settings, applicationName))
    const sql = yield* fromPool({ acquire: Effect.succeed(pool), applicationName }).pipe(
      Effect.provide(reactivityLayer),
      Effect.mapError((cause) => openFailure(location, cause)),
    )
    return { location, server, pool, sql }
  })
