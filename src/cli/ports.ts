/**
 * What the commands need from the assembled node. `src/assembly.ts` provides it; tests provide fakes.
 */
import type { Effect, Scope } from "effect"
import type { ClusterService } from "../actors/cluster.ts"
import type { SessionsService } from "../actors/sessions.ts"
import type { ExecutionMode } from "../domain/document.ts"
import type { Observer } from "../observability/observer.ts"
import type { PostgresSettings } from "../storage/postgres/settings.ts"
import type { ClientFilesService } from "../tools/client-files.ts"
import type { Settings } from "./settings.ts"

/** Why a node did not open: any typed error whose message is one line that says what to do. */
export interface OpenFailure {
  readonly _tag: string
  readonly message: string
}

export interface NodeOptions {
  /** Absolute path of the database, or of where it would be: what the node keeps outside the database is named after it. */
  readonly db: string
  /** The server that has the database instead of that file. */
  readonly postgres?: PostgresSettings
  readonly env: Readonly<Record<string, string | undefined>>
  readonly settings: Settings
  /** Absolute path: the workspace of conversations that name none. */
  readonly cwd: string
  /** The mode of conversations that choose none; default `auto`. */
  readonly mode?: ExecutionMode
  /** What this process is, for whoever meets it as the owner of the database, for example `super-pi chat`. */
  readonly program: string
  /** Who counts what happens on the node. Default nobody. */
  readonly observer?: Observer | undefined
  /** What a client of this process knows of files better than the disk. Default: nothing. */
  readonly clientFiles?: ClientFilesService
}

/**
 * Owns the database, or attaches to its owner and takes over when that goes. The node stops cleanly with the scope: a running turn goes
 * on when the database is opened next.
 */
export type OpenSessions = (options: NodeOptions) => Effect.Effect<SessionsService, OpenFailure, Scope.Scope>

/** A node that serves: its sessions, and what it says of itself among others. */
export interface OpenedNode {
  readonly sessions: SessionsService
  readonly cluster: ClusterService
}

/** {@link OpenSessions} for whoever serves others for long: a member of a cluster where the environment says so, else alone. */
export type OpenNode = (options: NodeOptions) => Effect.Effect<OpenedNode, OpenFailure, Scope.Scope>

/** Attaches to the running owner and never becomes one; null when nobody owns the database. */
export type AttachSessions = (options: {
  readonly db: string
  readonly program: string
}) => Effect.Effect<SessionsService | null, OpenFailure, Scope.Scope>
