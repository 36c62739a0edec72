/**
 * The PostgreSQL engines of the storage port: a node's writer with its reads, and a reader that needs no ownership. Several nodes may be open on
 * one database; each has an epoch of its own.
 */
import { Context, Effect, Exit, Layer, type Scope } from "effect"
import type { ConversationId } from "../../domain/ids.ts"
import { claimJobsBy } from "../claim-jobs.ts"
import { ClusterStore, type ClusterStoreService } from "../cluster-port.ts"
import { Conflict, type OpenError } from "../errors.ts"
import { Store, StoreReader, type StoreReads, type StoreService } from "../store.ts"
import { clientConfig } from "./client-config.ts"
import { clusterStore } from "./cluster-reads.ts"
import { encode } from "./encode.ts"
import { openFailure } from "./failures.ts"
import { type Ids, makeIds, type Reserved } from "./ids.ts"
import { connectLimit } from "./link.ts"
import { openPool, type PostgresPool } from "./pool.ts"
import { storeReads } from "./reads.ts"
import type { NodeIdentity } from "./registration.ts"
import { reading } from "./run.ts"
import { requireSchema } from "./schema-version.ts"
import type { PostgresSettings } from "./settings.ts"
import { openWriter, type Writer } from "./writer.ts"

/** Milliseconds for which reads and commits wait while the server is away. */
const defaultPatience = 5_000

export interface PostgresReaderOptions {
  readonly settings: PostgresSettings
  /** What `pg_stat_activity` says who this is; default `super-pi reader`. */
  readonly applicationName?: string
  /** Milliseconds for which reads, and commits that were not sent, wait while the server is away; default 5,000. */
  readonly patienceMs?: number
}

export interface PostgresStoreOptions extends Omit<PostgresReaderOptions, "applicationName"> {
  readonly node: NodeIdentity
  /** The shards (1 to 256) whose jobs this node claims; null, and the default: all. */
  readonly held?: () => ReadonlyArray<number> | null
  /** Opens as the only node: every other one is fenced off. Default false. */
  readonly alone?: boolean
}

/** Both services of one node. */
export interface PostgresStoreServices {
  readonly store: StoreService
  readonly cluster: ClusterStoreService
}

/** A pool on a database of this program's schema. */
const openDatabase = (
  settings: PostgresSettings,
  applicationName: string,
): Effect.Effect<PostgresPool, OpenError, Scope.Scope> =>
  Effect.tap(openPool(settings, { applicationName }), ({ location, pool }) =>
    Effect.tryPromise({
      try: async () => {
        const client = await pool.connect()
        try {
          await requireSchema(location, client)
        } finally {
          client.release()
        }
      },
      catch: (cause) => openFailure(location, cause),
    }),
  )

const takeConversation = (writer: Writer, ids: Ids) => (id: ConversationId) =>
  writer.call<number>(async (link) => {
    const [row] = await link.query(
      "SELECT super_pi_take($1, $2, $3) AS taken",
      [writer.epoch, link.number, [id]],
      "take",
    )
    // as the function builds it
    const taken = row?.taken as { readonly tokens: Readonly<Record<string, number>>; readonly reserved: Reserved }
    ids.outgrow(taken.reserved)
    const token = taken.tokens[id]
    return token === undefined
      ? Exit.fail(new Conflict({ what: `conversation ${id}`, detail: "it does not exist" }))
      : Exit.succeed(token)
  })

/** A node whose reads go through a pool that is open already, on a database of this program's schema. */
export const makeNodeOn = (
  { location, sql }: Pick<PostgresPool, "location" | "sql">,
  options: PostgresStoreOptions,
): Effect.Effect<PostgresStoreServices, OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const { alone = false, held = () => null, node, patienceMs = defaultPatience, settings } = options
    const config = () => ({
      ...clientConfig(settings, { applicationName: `super-pi writer ${node.name}` }),
      connectionTimeoutMillis: connectLimit,
    })
    const writer = yield* Effect.acquireRelease(
      Effect.tryPromise({
        try: () => openWriter({ alone, config, node, patienceMs, settings }),
        catch: (cause) => openFailure(location, cause),
      }),
      (opened) => Effect.promise(opened.close),
    )
    const reads = reading(sql, location, patienceMs)
    const ids = makeIds(writer.call)
    const all = storeReads(reads, location, held)
    const commit: StoreService["commit"] = (rows) => writer.commit(() => encode(rows, held()))
    const store: StoreService = {
      ...all,
      location,
      epoch: writer.epoch,
      mint: ids.mint,
      commit,
      takeConversation: takeConversation(writer, ids),
      claimJobs: claimJobsBy({ ...all, commit }),
    }
    return { store, cluster: clusterStore(reads, location, writer) }
  })

/**
 * Opens a node on the database: gives it an epoch, and a connection that only it writes on. Closing the scope writes what is queued and ends the
 * epoch. Fails where migrations are pending, and where the database is newer or not ours.
 */
export const makePostgresNode = (
  options: PostgresStoreOptions,
): Effect.Effect<PostgresStoreServices, OpenError, Scope.Scope> =>
  Effect.flatMap(openDatabase(options.settings, `super-pi reads ${options.node.name}`), (pool) =>
    makeNodeOn(pool, options),
  )

/** {@link makePostgresNode} without what only clusters need. */
export const makePostgresStore = (options: PostgresStoreOptions): Effect.Effect<StoreService, OpenError, Scope.Scope> =>
  Effect.map(makePostgresNode(options), ({ store }) => store)

/** Opens the database for reading, beside whoever writes it. */
export const makePostgresReader = ({
  applicationName = "super-pi reader",
  patienceMs = defaultPatience,
  settings,
}: PostgresReaderOptions): Effect.Effect<StoreReads & { readonly location: string }, OpenError, Scope.Scope> =>
  Effect.map(openDatabase(settings, applicationName), ({ location, sql }) => ({
    ...storeReads(reading(sql, location, patienceMs), location),
    location,
  }))

export const PostgresStore = {
  /** {@link makePostgresNode} as `Store` and `ClusterStore`. */
  layer: (options: PostgresStoreOptions): Layer.Layer<Store | ClusterStore, OpenError> =>
    Layer.scopedContext(
      Effect.map(makePostgresNode(options), ({ cluster, store }) =>
        Context.make(Store, store).pipe(Context.add(ClusterStore, cluster)),
      ),
    ),
}

export const PostgresReader = {
  /** {@link makePostgresReader} as the `StoreReader`. */
  layer: (options: PostgresReaderOptions): Layer.Layer<StoreReader, OpenError> =>
    Layer.scoped(StoreReader, makePostgresReader(options)),
}
