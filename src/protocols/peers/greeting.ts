/**
 * Carries out the handshake of `handshake.ts` on a wire, on either side, within a time limit.
 */
import { randomBytes } from "node:crypto"
import { Effect, Redacted } from "effect"
import type { Wire } from "../attach/wire.ts"
import { PeerFault, type PeerFaultReason } from "./faults.ts"
import {
  type Hellos,
  type Refusal,
  type Role,
  readHello,
  readProof,
  renderHello,
  renderProof,
  renderRefusal,
  speaks,
} from "./handshake.ts"
import type { PeerIdentity } from "./service.ts"

export interface GreetingOptions {
  readonly self: PeerIdentity
  readonly secret: Redacted.Redacted<string>
  /** Only nodes whose name begins like this; null: all. */
  readonly onlyNames: string | null
  /** For the whole handshake, in milliseconds. Default 3,000. */
  readonly timeoutMs?: number
}

const defaultTimeoutMs = 3000

/** Whether a node that proved the secret is one of ours. */
const judge = (peer: PeerIdentity, { self, onlyNames }: GreetingOptions): Refusal | null => {
  if (peer.system !== self.system) return "system"
  return onlyNames === null || peer.name.startsWith(onlyNames) ? null : "name"
}

/** Greets the other side of a connection to or from `address`; completes with who it is. */
export const greet = (
  wire: Wire,
  role: Role,
  address: string,
  options: GreetingOptions,
): Effect.Effect<PeerIdentity, PeerFault> => {
  const { self } = options
  const secret = Redacted.value(options.secret)
  const fault = (reason: PeerFaultReason) => new PeerFault({ address, reason })
  const say = (line: string) => Effect.sync(() => wire.outlet.write(`${line}\n`))
  const turnAway = (refusal: Refusal, reason: PeerFaultReason) =>
    Effect.zipRight(say(renderRefusal(refusal)), Effect.zipRight(wire.outlet.end, fault(reason)))
  const heard = Effect.flatMap(wire.line, (line) => (line === null ? fault("left") : Effect.succeed(line)))

  return Effect.gen(function* () {
    const ours = renderHello(self.instance, randomBytes(32).toString("hex"))
    yield* say(ours)
    const theirs = yield* heard
    const hello = readHello(theirs)
    if (hello === null) return yield* fault("stranger")
    if (hello.instance === self.instance) return yield* fault("self")
    if (!speaks(hello)) return yield* fault("protocol")
    const hellos: Hellos = role === "caller" ? { caller: ours, server: theirs } : { caller: theirs, server: ours }
    const proof = say(renderProof(secret, role, hellos, self))
    if (role === "caller") yield* proof
    const answer = readProof(yield* heard, secret, role === "caller" ? "server" : "caller", hellos)
    if (answer === null) return yield* fault("stranger")
    if ("refused" in answer) return yield* fault(answer.refused)
    if ("unproved" in answer) return yield* turnAway("secret", "unproved")
    const refusal = judge(answer.peer, options)
    if (refusal !== null) return yield* turnAway(refusal, refusal)
    if (role === "server") yield* proof
    wire.widen()
    return answer.peer
  }).pipe(
    Effect.timeoutFail({
      duration: options.timeoutMs ?? defaultTimeoutMs,
      onTimeout: () => fault("silent"),
    }),
  )
}
