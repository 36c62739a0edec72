/**
 * Whether this node would be heard by those that are there already, before it takes work that they could not reach.
 */
import { Data, Effect } from "effect"
import type { HostPort } from "../../domain/host-port.ts"
import { type ConnectOptions, connectPeer } from "./connect.ts"
import type { PeerFault, PeerFaultReason } from "./faults.ts"

/** What no waiting helps against: the settings of two nodes do not fit together. */
const misfits: ReadonlyArray<PeerFaultReason> = ["secret", "unproved", "protocol", "tls"]

/** How long a member may take to open a connection, and to greet, in milliseconds: a node that starts is slow itself. */
const patienceMs = 5000

/** A member of the cluster and this node do not fit together. */
class Misfit extends Data.TaggedError("Misfit")<{ readonly fault: PeerFault }> {
  override get message() {
    return `the member at ${this.fault.message}`
  }
}

/**
 * Connects once to each of these members, all at once. Fails where one of them and this node do not fit together; one that does not answer
 * now is no hindrance.
 */
export const checkMembers = (members: ReadonlyArray<HostPort>, options: ConnectOptions): Effect.Effect<void, Misfit> =>
  Effect.forEach(
    members,
    (address) =>
      Effect.catchAll(
        Effect.asVoid(
          Effect.scoped(connectPeer(address, { ...options, connectMs: patienceMs, timeoutMs: patienceMs })),
        ),
        (fault) => (misfits.includes(fault.reason) ? new Misfit({ fault }) : Effect.void),
      ),
    { concurrency: "unbounded", discard: true },
  )
