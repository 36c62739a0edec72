/**
 * What nodes ask each other beside the session contract. Answers may get further fields: unknown ones are ignored.
 */
import { Rpc, RpcGroup } from "@effect/rpc"
import { Schema } from "effect"
import { SessionRpcs } from "../../actors/contract.ts"

/** What a node says of itself at this moment. */
export const NodeInfo = Schema.Struct({
  /** Conversations in its memory. */
  machines: Schema.NonNegativeInt,
  /** Those of them that work. */
  busy: Schema.NonNegativeInt,
  draining: Schema.Boolean,
  /** Numbers of the shards that it holds. */
  shards: Schema.Array(Schema.Int),
})
export type NodeInfo = typeof NodeInfo.Type

class ReadNodeInfo extends Rpc.make("ReadNodeInfo", { success: NodeInfo }) {}

export const NodeRpcs = RpcGroup.make(ReadNodeInfo)

/** All that a node serves to other nodes. */
export const PeerRpcs = NodeRpcs.merge(SessionRpcs)
