/**
 * One connection to another node: greeted, and ready for calls. Used until it ends and never again.
 */
import * as RpcClient from "@effect/rpc/RpcClient"
import type { RpcClientError } from "@effect/rpc/RpcClientError"
import { Effect, type Scope } from "effect"
import { type HostPort, renderHostPort } from "../../domain/host-port.ts"
import { OwnerGone, type SessionsOver } from "../attach/attachment.ts"
import { makeConnection } from "../attach/connection.ts"
import { sessionsOver } from "../attach/sessions-over.ts"
import { makeWire } from "../attach/wire.ts"
import { type NodeInfo, PeerRpcs } from "./control.ts"
import { dial } from "./dial.ts"
import type { PeerFault } from "./faults.ts"
import { type GreetingOptions, greet } from "./greeting.ts"
import { maxHandshakeLine } from "./handshake.ts"
import type { PeerIdentity } from "./service.ts"
import type { PeerTls } from "./tls.ts"

export interface ConnectOptions extends GreetingOptions {
  readonly tls: PeerTls | null
  /** For the connection to open, in milliseconds. Default 2,000. */
  readonly connectMs?: number
  /** Milliseconds between two pings, after two of which without a sign of life the node is taken for gone; default 2,000. */
  readonly pingMs?: number
}

const defaultConnectMs = 2000
/** Milliseconds between two pings of a connection between nodes. */
export const peerPingMs = 2000

export interface PeerConnection {
  readonly peer: PeerIdentity
  readonly sessions: SessionsOver<OwnerGone>
  readonly info: Effect.Effect<NodeInfo, OwnerGone>
  /** Completes when the connection has ended, for whatever reason. */
  readonly gone: Effect.Effect<void>
}

/** Connects to the node at an address until the scope closes. */
export const connectPeer = (
  address: HostPort,
  options: ConnectOptions,
): Effect.Effect<PeerConnection, PeerFault, Scope.Scope> =>
  Effect.gen(function* () {
    const socket = yield* dial(address, options.tls, options.connectMs ?? defaultConnectMs)
    const wire = makeWire(socket, maxHandshakeLine)
    const peer = yield* greet(wire, "caller", renderHostPort(address), options)
    const connection = yield* makeConnection(wire, options.pingMs ?? peerPingMs)
    const client = yield* Effect.provideService(
      RpcClient.make(PeerRpcs, { disableTracing: true }),
      RpcClient.Protocol,
      connection.protocol,
    )
    const info = Effect.suspend((): Effect.Effect<NodeInfo, RpcClientError> => client.ReadNodeInfo())
    return {
      peer,
      sessions: sessionsOver(client, connection),
      info: Effect.catchAllCause(info, () => new OwnerGone()),
      gone: connection.gone,
    }
  })
