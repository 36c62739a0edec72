/**
 * `GET /` and `GET /health`: open to everybody, so they say nothing about anybody. Healthy means that a read of the database works and that
 * the event loop turns.
 */
import { Clock, Effect } from "effect"
import type { ProtocolService } from "../service.ts"
import { plainProblem } from "./problems.ts"
import type { Handler, HttpReply, RouteGroup } from "./route.ts"

/** For a read of the database, in ms. */
const readLimit = 2000
/** A turn of the event loop that takes longer counts as stuck, in ms. */
const lagLimit = 1000
/** For how long one look counts for everybody who asks, in ms. */
const freshFor = 500

interface Health {
  readonly database: "ok" | "failed"
  readonly lagMs: number
  readonly at: number
}

/** A look at the node on behalf of nobody. */
const look = (sessions: ProtocolService["sessions"]): Effect.Effect<Health> =>
  Effect.gen(function* () {
    const started = yield* Clock.currentTimeMillis
    yield* Effect.sleep(0)
    const lagMs = (yield* Clock.currentTimeMillis) - started
    const database = yield* sessions.list({ limit: 1, principal: "health" }).pipe(
      Effect.timeout(readLimit),
      Effect.match({ onSuccess: () => "ok" as const, onFailure: () => "failed" as const }),
      Effect.catchAllDefect(() => Effect.succeed("failed" as const)),
    )
    return { database, lagMs, at: yield* Clock.currentTimeMillis }
  })

/** `routes` are those of the whole server, for whoever asks what there is. */
export const statusRoutes = (
  service: Pick<ProtocolService, "sessions" | "version">,
  routes: () => ReadonlyArray<string>,
): RouteGroup => {
  let startedAt: number | null = null
  let last: Health | null = null
  let looking: Effect.Effect<Health> | null = null

  /** Those who ask at once share one look. */
  const health = Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (last !== null && now - last.at < freshFor) return last
    looking ??= yield* Effect.cached(
      Effect.ensuring(
        look(service.sessions),
        Effect.sync(() => {
          looking = null
        }),
      ),
    )
    last = yield* looking
    return last
  })

  const uptime = Effect.map(Clock.currentTimeMillis, (now) => {
    startedAt ??= now
    return Math.floor((now - startedAt) / 1000)
  })

  const handleHealth: Handler = () =>
    Effect.gen(function* () {
      const { database, lagMs } = yield* health
      const ok = database === "ok" && lagMs < lagLimit
      const reply: HttpReply = {
        type: "json",
        status: ok ? 200 : 503,
        body: {
          status: ok ? "ok" : "unhealthy",
          version: service.version,
          uptime_seconds: yield* uptime,
          database,
          event_loop_lag_ms: lagMs,
        },
        headers: ok ? {} : { "retry-after": "1" },
      }
      return reply
    })

  const handleRoot: Handler = () =>
    Effect.map(uptime, (seconds) => ({
      type: "json" as const,
      body: { name: "super-pi", status: "ok", version: service.version, uptime_seconds: seconds, routes: routes() },
    }))

  return {
    name: "status",
    prefixes: ["/", "/health"],
    routes: [
      { method: "GET", path: "/", open: true, handle: handleRoot },
      { method: "GET", path: "/health", open: true, handle: handleHealth },
    ],
    problem: plainProblem,
  }
}
