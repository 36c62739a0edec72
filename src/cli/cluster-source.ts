/**
 * Where `super-pi cluster` learns how a cluster is: from the gateway of one of its nodes, or beside the nodes from what they share.
 */
import { Clock, Effect, Schema, type Scope } from "effect"
import type { ClusterStatus } from "../domain/cluster.ts"
import { type Env, envValue } from "../models/settings.ts"
import { ClusterView } from "../protocols/cluster/view.ts"
import type { PostgresSettings } from "../storage/postgres/settings.ts"
import { readOwner } from "../storage/sqlite/owner-file.ts"
import { canonicalPathOf } from "../storage/sqlite/paths.ts"
import { makeAlone } from "../supervisors/alone.ts"
import { CommandFailure, messageOf } from "./exit.ts"
import { attachSessions, openReader } from "./node.ts"
import { version } from "./package.ts"
import type { Paths } from "./paths.ts"
import type { OpenFailure } from "./ports.ts"
import { serverNamed } from "./server.ts"

/** How long a node may take to answer, in ms. */
const answerMs = 10_000

/** The first token of `key-one,alice=key-two`, without its name. */
const firstToken = (env: Env): string | null => {
  const first = envValue(env, "SUPER_PI_GATEWAY_TOKEN")?.split(",")[0]?.trim() ?? ""
  const token = /^[\w.@-]{1,64}=([^=].*)$/.exec(first)?.[1] ?? first
  return token === "" ? null : token
}

const addressOf = (url: string): URL => {
  const address = URL.canParse(url) ? new URL(url) : null
  if (address === null || !/^https?:$/.test(address.protocol))
    throw new CommandFailure(
      `--url: expected an http or https URL such as http://127.0.0.1:4000, got ${JSON.stringify(url)}`,
    )
  address.pathname = `${address.pathname.replace(/\/+$/, "")}/cluster`
  return address
}

const decode = Schema.decodeUnknownEither(Schema.parseJson(ClusterView))

const statusOf = ({ members, oldest_unserved_ms, ...view }: ClusterView): ClusterStatus => ({
  ...view,
  members: members.map(({ started_at, ...member }) => ({ ...member, startedAt: started_at })),
  oldestUnservedMs: oldest_unserved_ms,
})

/** Asks a gateway. */
export const askGateway = (url: string, env: Env): Effect.Effect<ClusterStatus, CommandFailure> =>
  Effect.gen(function* () {
    const address = yield* Effect.try({ try: () => addressOf(url), catch: asFailure })
    const token = firstToken(env)
    const [status, text] = yield* Effect.tryPromise({
      try: async (signal) => {
        const headers = token === null ? {} : { authorization: `Bearer ${token}` }
        const response = await fetch(address, { headers, signal, redirect: "error" })
        return [response.status, await response.text()] as const
      },
      catch: (cause) => {
        const inner = cause instanceof Error && cause.cause !== undefined ? cause.cause : cause
        return new CommandFailure(`${address.origin} does not answer: ${messageOf(inner)}; is a node running there?`)
      },
    }).pipe(
      Effect.timeoutFail({
        duration: answerMs,
        onTimeout: () => new CommandFailure(`${address.origin} did not answer within ${answerMs / 1000} s`),
      }),
    )
    if (status === 401)
      return yield* Effect.fail(
        new CommandFailure(`${address.origin} wants a token: set SUPER_PI_GATEWAY_TOKEN to one that it knows`),
      )
    const view = decode(text)
    if (status !== 200 || view._tag === "Left")
      return yield* Effect.fail(
        new CommandFailure(
          `${address.href}: expected the status of a cluster, got HTTP ${status}; is it a Super-Pi gateway?`,
        ),
      )
    return statusOf(view.right)
  })

const asFailure = (error: unknown): CommandFailure =>
  error instanceof CommandFailure ? error : new CommandFailure(messageOf(error))

/** Asks the process that has the database file, over its socket; it is a cluster of one. */
const askFile = (paths: Paths): Effect.Effect<ClusterStatus, CommandFailure | OpenFailure, Scope.Scope> =>
  Effect.gen(function* () {
    const { database } = paths
    const sessions = yield* attachSessions(paths, "super-pi cluster")
    const reads = sessions === null ? null : yield* openReader(paths)
    const owner = readOwner(canonicalPathOf(database))
    if (sessions === null || reads === null || owner === null)
      return yield* Effect.fail(
        new CommandFailure(`no node is running on ${database}; start one with super-pi node, or give --url or --db`),
      )
    const { cluster } = makeAlone({
      sessions,
      reads,
      name: `${owner.host}-${owner.pid}`,
      version: version(),
      startedAt: owner.since,
      drainMs: 0,
      owns: () => false,
    })
    return yield* cluster.status
  })

/** Reads what the nodes share. */
const askServer = (server: PostgresSettings): Effect.Effect<ClusterStatus, CommandFailure | OpenFailure> =>
  Effect.gen(function* () {
    const { lookAtCluster } = yield* Effect.promise(() => import("../storage/postgres/cluster-look.ts"))
    const status = yield* lookAtCluster(server, yield* Clock.currentTimeMillis)
    if (status.members.length > 0) return status
    const { locationOf } = yield* Effect.promise(() => import("../storage/postgres/settings.ts"))
    return yield* Effect.fail(
      new CommandFailure(`no node is running on ${locationOf(server)}; start one with super-pi node, or give --url`),
    )
  })

/** Learns it beside the nodes: from the shared database, or from the one process that has the file. */
export const askBeside = (paths: Paths): Effect.Effect<ClusterStatus, CommandFailure | OpenFailure, Scope.Scope> =>
  Effect.flatMap(
    serverNamed(paths),
    (server): Effect.Effect<ClusterStatus, CommandFailure | OpenFailure, Scope.Scope> =>
      server === null ? askFile(paths) : askServer(server),
  )
