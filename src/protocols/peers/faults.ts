/**
 * Why there is no connection to an address.
 */
import { Data } from "effect"
import { protocols } from "./handshake.ts"

const reasons = {
  refused: "nobody listens there",
  unreachable: "it cannot be reached",
  silent: "whoever listens there does not answer",
  left: "the connection ended before the greeting was over",
  stranger: "something else than a node of super-pi listens there",
  tls: "the TLS handshake failed",
  unproved: "it does not know our cluster secret; SUPER_PI_CLUSTER_SECRET must be the same on every node",
  secret: "it does not accept our cluster secret; SUPER_PI_CLUSTER_SECRET must be the same on every node",
  protocol: `it speaks another protocol than ours (${protocols.least} to ${protocols.most}); update the older program`,
  system: "it works on another database",
  name: "its name belongs to another system; see SUPER_PI_CLUSTER_NODE_BASENAME",
  self: "it is this node itself",
} as const

export type PeerFaultReason = keyof typeof reasons

/** No connection to that address. */
export class PeerFault extends Data.TaggedError("PeerFault")<{
  /** `host:port`. */
  readonly address: string
  readonly reason: PeerFaultReason
  /** What the system said, where it said something. */
  readonly detail?: string
}> {
  override get message() {
    return `${this.address}: ${reasons[this.reason]}${this.detail === undefined ? "" : ` (${this.detail})`}`
  }
}

/** Reasons that go on until somebody changes the configuration: people are told. */
export const isLasting = (reason: PeerFaultReason): boolean =>
  ["stranger", "tls", "unproved", "secret", "protocol", "system"].includes(reason)
