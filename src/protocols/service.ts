/**
 * What every protocol adapter is given: the conversations of a node, behind their contract, and what it may say of the node.
 */
import type { Effect } from "effect"
import type { SessionsService } from "../actors/sessions.ts"
import type { Failure, InvalidRequest } from "../domain/failure.ts"
import type { Json, JsonObject } from "../domain/json.ts"
import type { RemoteRules } from "./remote.ts"

/** A model as `/v1/models`, `models.list` and model pickers list it. */
export interface ListedModel {
  /** `provider/model`. */
  readonly id: string
  readonly provider: string
  readonly name: string
  /** Tokens of the whole context window, when known. */
  readonly contextWindow: number | null
  readonly images: boolean
  readonly thinking: boolean
  readonly isDefault: boolean
}

export interface ProtocolService {
  readonly sessions: SessionsService
  /** The models of the configured providers. */
  readonly models: Effect.Effect<ReadonlyArray<ListedModel>, Failure>
  /** The version of this program. */
  readonly version: string
  /** How far callers may choose modes. */
  readonly remote: RemoteRules
  /** The faults of a value against a JSON Schema; fails where the schema cannot be used. Left out, any value will do. */
  readonly checkOf?: (schema: JsonObject) => Effect.Effect<(value: Json) => ReadonlyArray<string>, InvalidRequest>
}
