/**
 * Path locks (`domain/path-lock.ts`) as advisory locks of one session per node. The connection is opened by the first call that needs it:
 *
 *   closed → open (asked for a sign of life every few seconds) → closed, when it was not used for a while, is lost, or does not answer
 *
 * 1. All locks of a call are tried in one statement. Where one is taken the others go back at once, and all are tried again a moment later: so
 *    no call holds one path while it waits for another, and waits end in any order.
 * 2. A session from which nothing comes any more (a paused node, a cut network) is ended by the server with its locks. Its node finds out by
 *    the sign of life, by the end of the connection, and at the latest when it asks before a write.
 */
import { createHash } from "node:crypto"
import { Deferred, Effect, FiberId, Random, Schedule, type Scope } from "effect"
import { Client } from "pg"
import { PathLockLost, type PathLocksService } from "../../domain/path-lock.ts"
import { clientConfig } from "./client-config.ts"
import { openFailure } from "./failures.ts"
import { locationOf, type PostgresSettings } from "./settings.ts"

/** Between two signs of life, and how long an answer may take, in ms. */
const aliveMs = 4_000
/** The server ends a session from which nothing came for this long, in ms: longer than two signs of life. */
const sessionMs = 12_000
/** A connection that no call used for this long is closed, in ms. */
const unusedMs = 60_000
/** Between two attempts at locks that somebody else has, in ms: doubled up to the second figure, each shortened by up to half at random. */
const retryMs = [10, 250] as const

/** The number of a path's lock. Of two paths with one number the calls wait for each other; that is all. */
const numberOf = (path: string): string =>
  createHash("sha256").update(`super-pi path\0${path}`).digest().readBigInt64BE(0).toString()

/** A session that holds locks. */
interface Session {
  readonly client: Client
  /** Completes when it is lost. */
  readonly lost: Deferred.Deferred<never, PathLockLost>
  readonly onLost: () => void
  alive: boolean
  calls: number
  usedAt: number
}

const lostText =
  "its lock among the nodes was lost (the connection to PostgreSQL broke); look at the file before you go on, another node may have changed it"

const cannot = (cause: unknown) =>
  new PathLockLost({
    reason: `no lock among the nodes could be taken, and nothing was changed: ${cause instanceof Error ? cause.message : String(cause)}`,
  })

class PathLocksOnPostgres implements PathLocksService {
  private readonly settings: PostgresSettings
  private opening: Promise<Session> | null = null

  constructor(settings: PostgresSettings) {
    this.settings = settings
  }

  readonly withLock: PathLocksService["withLock"] = (paths, use) =>
    Effect.uninterruptibleMask((restore) => {
      const numbers = [...new Set(paths.map(numberOf))]
      const taken = (waitMs: number): Effect.Effect<Session, PathLockLost> =>
        Effect.flatMap(this.attempt(numbers), (session) =>
          session !== null
            ? Effect.succeed(session)
            : Effect.flatMap(Random.next, (random) =>
                Effect.zipRight(
                  restore(Effect.sleep(waitMs * (1 - random / 2))),
                  taken(Math.min(waitMs * 2, retryMs[1])),
                ),
              ),
        )
      // While nothing is held a connection that breaks is only opened again.
      const begun = Effect.retry(taken(retryMs[0]), Schedule.intersect(Schedule.spaced(200), Schedule.recurs(3)))
      return Effect.flatMap(begun, (session) =>
        restore(Effect.raceFirst(use(this.sureOf(session)), Deferred.await(session.lost))).pipe(
          Effect.ensuring(this.release(session, numbers)),
        ),
      )
    })

  async close(): Promise<void> {
    const session = await this.opening?.catch(() => null)
    if (session != null) await end(session)
  }

  private sureOf(session: Session): () => Promise<void> {
    return async () => {
      if (!(await answers(session)))
        throw new PathLockLost({ reason: lostText.replace("look at", "nothing was changed; look at") })
    }
  }

  /** All or none: null where somebody else has one of them. */
  private attempt(numbers: ReadonlyArray<string>): Effect.Effect<Session | null, PathLockLost> {
    return Effect.tryPromise({
      try: async () => {
        const session = await this.session()
        session.calls += 1
        session.usedAt = Date.now()
        try {
          const { rows } = await within<{ readonly at: number; readonly got: boolean }>(
            session,
            "SELECT at, pg_try_advisory_lock(number) AS got FROM unnest($1::bigint[]) WITH ORDINALITY AS l(number, at)",
            numbers,
          )
          if (rows.every(({ got }) => got)) return session
          const got = rows.flatMap(({ at, got }) => (got ? (numbers[at - 1] ?? []) : []))
          if (got.length > 0) await within(session, unlock, got)
        } catch (cause) {
          session.calls -= 1
          throw cause
        }
        session.calls -= 1
        return null
      },
      catch: (cause) => cannot(cause),
    })
  }

  private release(session: Session, numbers: ReadonlyArray<string>): Effect.Effect<void> {
    return Effect.promise(async () => {
      session.calls -= 1
      session.usedAt = Date.now()
      // With a session that is gone its locks are.
      if (session.alive) await within(session, unlock, numbers).catch(() => undefined)
    })
  }

  /** The one that is open, or a new one. */
  private session(): Promise<Session> {
    this.opening ??= open(this.settings, () => {
      this.opening = null
    }).catch((cause: unknown) => {
      this.opening = null
      throw cause
    })
    return this.opening
  }
}

const unlock = "SELECT pg_advisory_unlock(number) FROM unnest($1::bigint[]) AS l(number)"

/** A statement of the session; one that does not answer in time ends the session. */
const within = async <Row extends Readonly<Record<string, unknown>>>(
  session: Session,
  text: string,
  numbers: ReadonlyArray<string>,
): Promise<{ readonly rows: ReadonlyArray<Row> }> => {
  const late = setTimeout(() => void end(session), aliveMs)
  try {
    return await session.client.query<Row>(text, [numbers])
  } finally {
    clearTimeout(late)
  }
}

/** Whether the session is still there, and with it its locks. */
const answers = async (session: Session): Promise<boolean> => {
  if (!session.alive) return false
  const late = setTimeout(() => void end(session), aliveMs)
  try {
    await session.client.query("SELECT 1")
    return session.alive
  } catch {
    await end(session)
    return false
  } finally {
    clearTimeout(late)
  }
}

const lose = (session: Session): void => {
  if (!session.alive) return
  session.alive = false
  session.onLost()
  Deferred.unsafeDone(session.lost, Effect.fail(new PathLockLost({ reason: lostText })))
}

const end = async (session: Session): Promise<void> => {
  lose(session)
  await session.client.end().catch(() => undefined)
}

const open = async (settings: PostgresSettings, onLost: () => void): Promise<Session> => {
  const client = new Client(
    clientConfig(settings, { applicationName: "super-pi paths", options: `-c idle_session_timeout=${sessionMs}ms` }),
  )
  const session: Session = {
    client,
    lost: Deferred.unsafeMake<never, PathLockLost>(FiberId.none),
    onLost,
    alive: true,
    calls: 0,
    usedAt: Date.now(),
  }
  client.on("error", () => lose(session))
  try {
    await client.connect()
  } catch (cause) {
    await client.end().catch(() => undefined)
    throw openFailure(locationOf(settings), cause)
  }
  const asking = setInterval(() => {
    if (session.calls === 0 && Date.now() - session.usedAt > unusedMs) void end(session)
    else void answers(session)
  }, aliveMs)
  asking.unref()
  client.once("end", () => {
    clearInterval(asking)
    lose(session)
  })
  return session
}

/** The path locks of this node, until the scope closes. Nothing is opened before the first call needs it. */
export const postgresPathLocks = (settings: PostgresSettings): Effect.Effect<PathLocksService, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => new PathLocksOnPostgres(settings)),
    (locks) => Effect.promise(() => locks.close()),
  )
