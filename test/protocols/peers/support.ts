/** Nodes for the tests of their connections: each serves made-up sessions on loopback, under one secret. */
import { Effect, Redacted, type Scope, Stream } from "effect"
import type { HostPort } from "../../../src/domain/host-port.ts"
import { text } from "../../../src/domain/message.ts"
import type { ConnectOptions } from "../../../src/protocols/peers/connect.ts"
import type { NodeInfo } from "../../../src/protocols/peers/control.ts"
import { makePeers } from "../../../src/protocols/peers/peers.ts"
import { listenPeers, type ServePeersOptions } from "../../../src/protocols/peers/serve.ts"
import type { PeerIdentity } from "../../../src/protocols/peers/service.ts"
import type { PeerTls } from "../../../src/protocols/peers/tls.ts"
import { makeFakeSessions } from "../fake-sessions.ts"

export const secret = Redacted.make("a secret of the tests, long enough")

export const identity = (epoch: number, rest: Partial<PeerIdentity> = {}): PeerIdentity => ({
  name: `super_pi@node-${epoch}`,
  epoch,
  address: "127.0.0.1:1",
  instance: `instance ${epoch}`,
  version: "1.0.0",
  system: "database one",
  ...rest,
})

export const options = (epoch: number, rest: Partial<ConnectOptions> = {}): ConnectOptions => ({
  self: identity(epoch),
  secret,
  onlyNames: null,
  tls: null,
  ...rest,
})

export const someInfo: NodeInfo = { machines: 3, busy: 1, draining: false, shards: [1, 2, 256] }

export interface TestNode {
  readonly address: HostPort
  readonly fake: Effect.Effect.Success<ReturnType<typeof makeFakeSessions>>
}

/** A node that answers others until the scope closes. */
export const node = (
  epoch: number,
  rest: Partial<ServePeersOptions> & {
    readonly tls?: PeerTls | null
    readonly port?: number
    readonly hold?: boolean
  } = {},
): Effect.Effect<TestNode, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const fake = yield* makeFakeSessions({ name: `node ${epoch}`, hold: rest.hold ?? false })
    const listener = yield* listenPeers({ host: "127.0.0.1", port: rest.port ?? 0, tls: rest.tls ?? null })
    yield* listener.serve({
      self: identity(epoch),
      secret,
      onlyNames: null,
      sessions: fake.sessions,
      info: Effect.succeed(someInfo),
      ...rest,
    })
    return { address: { host: "127.0.0.1", port: listener.port }, fake }
  })

/** The connections of a node; `discovered` never changes. */
export const peersOf = (
  epoch: number,
  discovered: ReadonlyArray<HostPort>,
  rest: Partial<Parameters<typeof makePeers>[0]> = {},
) =>
  makePeers({
    ...options(epoch),
    discovered: Stream.concat(Stream.make(discovered), Stream.never),
    ...rest,
  })

export const open = { conversationId: null, agent: { cwd: "/tmp" }, title: null, requestId: null }
export const said = (words: string) => [text(words)]
