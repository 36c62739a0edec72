/**
 * What makes the node of one process a node of a cluster: where its conversations are gated, and how calls for others leave it. Absent
 * where one process owns the database.
 */
import { Context, type Effect, type Scope } from "effect"
import type { SessionsService, Target } from "../../actors/sessions.ts"
import type { SessionState } from "../../domain/event.ts"
import type { Failure } from "../../domain/failure.ts"
import type { Conversations } from "../conversations.ts"

export interface ClusteringService {
  /** The node's conversations behind the gate of its shards. */
  readonly gate: (plain: Conversations) => Conversations
  /** The state of a conversation, wherever it is. */
  readonly stateOf: (target: Target) => Effect.Effect<SessionState, Failure>
  /**
   * The sessions of the cluster, from those of this node. From now on the node serves others, takes shards and goes on with their open
   * work; with the scope it hands them back.
   */
  readonly join: (here: SessionsService) => Effect.Effect<SessionsService, Failure, Scope.Scope>
}

export class Clustering extends Context.Tag("super-pi/Clustering")<Clustering, ClusteringService>() {}
