/**
 * Who works on a database: one node alone, or the nodes of a cluster together, never both. Rules:
 * 1. It is an advisory lock on a connection of its own, exclusive or shared. PostgreSQL drops it with the connection: there are no stale ones.
 *    The server finds out within half a minute that a machine is gone without a word (TCP keepalive).
 * 2. The connection is named after its process, so that whoever comes second can say who is first.
 * 3. A lock whose connection breaks is taken again as soon as the server is back. Should somebody else have it by then, their epoch fences
 *    this node: it can commit nothing any more.
 */
import { hostname } from "node:os"
import { Data, Deferred, Effect, Schedule, type Scope } from "effect"
import type { Client } from "pg"
import { errorCode } from "../../domain/error-code.ts"
import type { OpenError } from "../errors.ts"
import { attempt, openClient } from "./client.ts"
import { lockClass, ownerLock } from "./locks.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** `alone`: nobody else; `clustered`: beside other nodes of the cluster. */
export type Ownership = "alone" | "clustered"

/** Somebody else works on the database. */
export class DatabaseInUse extends Data.TaggedError("DatabaseInUse")<{
  readonly location: string
  /** `super-pi chat (process 12 on host)`; it may be cut where names are long. */
  readonly holder: string
  /** Milliseconds since the epoch; null: not known. */
  readonly since: number | null
  readonly wanted: Ownership
}> {
  override get message() {
    const since = this.since === null ? "" : ` since ${new Date(this.since).toISOString()}`
    const advice =
      this.wanted === "alone"
        ? "close it, use its gateway, or run both as nodes of a cluster (SUPER_PI_CLUSTER_STRATEGY); attaching works with SQLite only"
        : "close it, or run it as a node of the cluster too (SUPER_PI_CLUSTER_STRATEGY)"
    return `${this.location} is in use by ${this.holder}${since}; ${advice}`
  }
}

/** Seconds: a peer that is gone without a word is noticed after idle + interval × count. Ignored on unix sockets. */
const keepAlive = "-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3"

/** Bytes of a name in `pg_stat_activity`. */
const nameLimit = 63
const suffix = () => ` (process ${process.pid} on ${hostname()})`

/** The program and its process; the program is cut where both are too long. */
const nameOf = (program: string): string => {
  const end = suffix().slice(0, nameLimit - 10)
  return `${program.slice(0, nameLimit - end.length)}${end}`
}

/** A process, and since when, in milliseconds since the epoch. */
export interface Holder {
  readonly name: string
  readonly since: number
}

const holders = `SELECT a.application_name AS name, (extract(epoch FROM a.backend_start) * 1000)::float8 AS since
  FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND l.classid = $1::bigint::oid AND l.objid = $2::bigint::oid AND l.objsubid = 2
    AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  ORDER BY a.backend_start LIMIT 50`

const tryTake = async (client: Client, ownership: Ownership): Promise<boolean> => {
  const take = ownership === "alone" ? "pg_try_advisory_lock" : "pg_try_advisory_lock_shared"
  const { rows } = await client.query<{ taken: boolean }>(`SELECT ${take}($1, $2) AS taken`, [lockClass, ownerLock])
  return rows[0]?.taken === true
}

/** Who works on the database, the first first. */
export const readHolders = async (client: Client): Promise<ReadonlyArray<Holder>> =>
  (await client.query<Holder>(holders, [lockClass, ownerLock])).rows

/** A process of this machine that ended: the server is about to notice. */
const isLeaving = ({ name }: Holder): boolean => {
  const [, pid, host] = /\(process (\d+) on (.+)\)$/.exec(name) ?? []
  if (pid === undefined || host !== hostname()) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (cause) {
    return errorCode(cause) === "ESRCH"
  }
}

/** The holder changes: the lock was free again, or its process is gone. */
class Changing extends Data.TaggedError("Changing") {}

const takeOn = (
  client: Client,
  location: string,
  wanted: Ownership,
): Effect.Effect<void, DatabaseInUse | OpenError> => {
  const look = Effect.gen(function* () {
    if (yield* attempt(location, () => tryTake(client, wanted))) return
    const [holder] = yield* attempt(location, () => readHolders(client))
    if (holder === undefined || isLeaving(holder)) return yield* new Changing()
    return yield* new DatabaseInUse({ location, holder: holder.name, since: holder.since, wanted })
  })
  return look.pipe(
    Effect.retry({ schedule: Schedule.spaced("50 millis"), times: 60, while: ({ _tag }) => _tag === "Changing" }),
    Effect.catchTag("Changing", () => new DatabaseInUse({ location, holder: "another program", since: null, wanted })),
  )
}

/** Takes the lock on a connection of its own; gives what completes when that connection is gone. */
const open = (settings: PostgresSettings, program: string, wanted: Ownership) =>
  Effect.gen(function* () {
    const client = yield* openClient(settings, { applicationName: nameOf(program), options: keepAlive })
    const gone = new Promise<void>((resolve) => client.once("end", () => resolve()))
    yield* takeOn(client, locationOf(settings), wanted)
    return Effect.promise(() => gone)
  })

/** Works on the database until the scope closes. `program` is what others are told, for example `super-pi chat`. */
export const ownDatabase = (
  settings: PostgresSettings,
  { as, program }: { readonly program: string; readonly as: Ownership },
): Effect.Effect<void, DatabaseInUse | OpenError, Scope.Scope> =>
  Effect.gen(function* () {
    const taken = yield* Deferred.make<void, DatabaseInUse | OpenError>()
    const hold = Effect.scoped(
      Effect.flatMap(open(settings, program, as), (gone) => Effect.zipRight(Deferred.succeed(taken, undefined), gone)),
    )
    const again = hold.pipe(
      Effect.tapErrorTag("DatabaseInUse", ({ message }) => Effect.logError(`the lock was lost: ${message}`)),
      Effect.retry(Schedule.spaced("500 millis")),
    )
    yield* Effect.forkScoped(
      Effect.zipRight(
        Effect.tapError(hold, (error) => Deferred.fail(taken, error)),
        Effect.forever(again),
      ),
    )
    yield* Deferred.await(taken)
  })
