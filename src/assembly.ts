/**
 * The assembled node: which engine, models, tools and tree stand behind a database, and who answers for it. Owning starts the node in this
 * process and serves it to others on a unix socket beside the database; a process that finds an owner attaches to it, and takes over when
 * that one goes (docs/attach.md).
 */
import { randomUUID } from "node:crypto"
import { Effect, type Scope } from "effect"
import type { SessionsService } from "./actors/sessions.ts"
import { joinCluster } from "./assembly-join.ts"
import { buildNode } from "./assembly-services.ts"
import { version } from "./cli/package.ts"
import type { AttachSessions, NodeOptions, OpenSessions } from "./cli/ports.ts"
import { clusterSettings } from "./domain/cluster-settings.ts"
import type { Failure } from "./domain/failure.ts"
import { attachedSessions } from "./protocols/attach/derive.ts"
import type { Peer } from "./protocols/attach/handshake.ts"
import { takeover } from "./protocols/attach/takeover.ts"
import type { OpenError } from "./storage/errors.ts"
import { mayBeAlive, readOwner } from "./storage/sqlite/owner-file.ts"
import { claim, type Lease } from "./storage/sqlite/ownership.ts"
import { canonicalPathOf } from "./storage/sqlite/paths.ts"
import { SqliteStore } from "./storage/sqlite/store.ts"

const peer = (): Peer => ({ program: "super-pi", version: version(), pid: process.pid, instance: randomUUID() })

/** Builds the node on the database file in the current scope. */
const own = (lease: Lease, options: NodeOptions): Effect.Effect<SessionsService, Failure | OpenError, Scope.Scope> => {
  const synchronous = options.settings.synchronous ?? "NORMAL"
  return buildNode(lease.path, options, SqliteStore.layer({ path: lease.path, synchronous }))
}

const serve = (sessions: SessionsService, lease: Lease, self: Peer) =>
  Effect.flatMap(
    Effect.promise(() => import("./protocols/attach/serve.ts")),
    ({ serveAttach }) => serveAttach({ path: lease.socket, sessions, self }),
  )

const attach = (socket: string, self: Peer) =>
  Effect.flatMap(
    Effect.promise(() => import("./protocols/attach/attach.ts")),
    (module) => module.attach({ socket, self }),
  )

/** Owns the database, attaches to its owner, or joins the cluster as a guest; see {@link OpenSessions}. */
export const openSessions: OpenSessions = (options) =>
  Effect.flatMap(clusterSettings(options.env), (settings) =>
    settings.discovery.strategy === "none"
      ? openAlone(options)
      : Effect.map(joinCluster(options, settings, true), ({ sessions }) => sessions),
  )

const openAlone: OpenSessions = (options) => {
  const { postgres } = options
  if (postgres !== undefined) {
    return Effect.flatMap(
      Effect.promise(() => import("./assembly-postgres.ts")),
      ({ openOnPostgres }) => openOnPostgres(postgres, options),
    )
  }
  const self = peer()
  return takeover({
    claim: claim(options.db, { program: options.program }),
    own: (lease) => own(lease, options),
    serve: (sessions, lease) => serve(sessions, lease, self),
    attach: (holder) => attach(holder.socket, self),
  })
}

/** Attaches to the running owner, or gives null when nobody owns the database; see {@link AttachSessions}. */
export const attachSessions: AttachSessions = ({ db }) =>
  Effect.gen(function* () {
    const owner = readOwner(canonicalPathOf(db))
    if (owner === null || !mayBeAlive(owner)) return null
    return attachedSessions(yield* attach(owner.socket, peer()))
  })
