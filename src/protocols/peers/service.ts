/**
 * The other nodes of a cluster as this one reaches them. Types only; `peers.ts` makes it.
 */
import { Data, type Effect, type Stream } from "effect"
import type { HostPort } from "../../domain/host-port.ts"
import type { OwnerGone, SessionsOver } from "../attach/attachment.ts"
import type { NodeInfo } from "./control.ts"

/** Who a node is to the others. */
export interface PeerIdentity {
  readonly name: string
  /** Its number in the database, new for every life. */
  readonly epoch: number
  /** Where others reach it, `host:port`. */
  readonly address: string
  /** A fresh value for every life of a process. */
  readonly instance: string
  readonly version: string
  /** Which database it works on: nodes with another one are not ours, whatever their secret. */
  readonly system: string
}

/** A node that is connected, or was, or is being tried. Times in milliseconds since the epoch. */
export interface PeerInfo {
  /** Null where it never answered. */
  readonly name: string | null
  readonly epoch: number | null
  /** The address under which it is tried, `host:port`. */
  readonly address: string
  readonly version: string | null
  /** Null: not connected. */
  readonly connectedSince: number | null
  /** Why the last attempt or connection ended; null while connected. */
  readonly lastError: string | null
}

/** No connection to that node within the time that a call may wait for one. */
export class PeerUnreachable extends Data.TaggedError("PeerUnreachable")<{
  readonly epoch: number
  /** One line: what is known about it. */
  readonly reason: string
}> {
  override get message() {
    return `node ${this.epoch}: ${this.reason}`
  }
}

/** A live member by the database. */
export interface WantedPeer {
  readonly epoch: number
  readonly address: HostPort
}

export interface PeersService {
  /** The sessions of a node, for any number of calls and streams; waits up to about two seconds for a connection that is being made. */
  readonly link: (epoch: number) => Effect.Effect<SessionsOver<OwnerGone>, PeerUnreachable>
  /** What a node says of itself. Answers within about two seconds. */
  readonly info: (epoch: number) => Effect.Effect<NodeInfo, PeerUnreachable | OwnerGone>
  /** Every node that is connected or tried, as of now. */
  readonly known: Effect.Effect<ReadonlyArray<PeerInfo>>
  /** The live members by the database, this node or not: their addresses are tried beside what discovery finds. Replaces the last list. */
  readonly wanted: (members: ReadonlyArray<WantedPeer>) => Effect.Effect<void>
  /** {@link known} now and after every change. */
  readonly changes: Stream.Stream<ReadonlyArray<PeerInfo>>
}
