/**
 * How two nodes come to trust each other on a fresh connection. Pure. Lines, each way:
 * 1. Both say hello: a fresh nonce, the instance, the range of protocol numbers. Nothing else is told to strangers.
 * 2. The one that connected shows who it is and proves the secret: an HMAC over its role, both hello lines and its identity. Proofs so fit
 *    one connection, one direction and one identity only.
 * 3. The other does the same, or says why not. It proves nothing to somebody who did not prove first.
 * Versions of the program may differ: what counts is that the ranges of protocol numbers overlap.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Option, Schema } from "effect"
import type { PeerIdentity } from "./service.ts"

/** Protocol numbers that this program speaks; raised when messages change so that an older program would misread them. */
export const protocols = { least: 1, most: 1 } as const

/** Bytes that a line of the handshake may have. */
export const maxHandshakeLine = 4096

export type Role = "caller" | "server"

const Hello = Schema.Struct({
  program: Schema.Literal("super-pi"),
  least: Schema.NonNegativeInt,
  most: Schema.NonNegativeInt,
  nonce: Schema.String.pipe(Schema.pattern(/^[0-9a-f]{64}$/)),
  instance: Schema.String.pipe(Schema.maxLength(100)),
})
export type Hello = typeof Hello.Type

const short = Schema.String.pipe(Schema.maxLength(300))
const Identity = Schema.Struct({
  name: short,
  epoch: Schema.NonNegativeInt,
  address: short,
  instance: short,
  version: short,
  system: short,
})

/** Why a node turns another one away. `secret` is all that is ever said about a proof. */
export const Refusal = Schema.Literal("secret", "protocol", "system", "name")
export type Refusal = typeof Refusal.Type

const Proved = Schema.Struct({
  /** JSON, as it was signed. */
  identity: Schema.String,
  proof: Schema.String.pipe(Schema.pattern(/^[0-9a-f]{64}$/)),
})
const Refused = Schema.Struct({ refused: Refusal })

const decodeHello = Schema.decodeUnknownOption(Schema.parseJson(Hello))
const decodeProved = Schema.decodeUnknownOption(Schema.parseJson(Schema.Union(Proved, Refused)))
const decodeIdentity = Schema.decodeUnknownOption(Schema.parseJson(Identity))

/** The hello line of a connection, without its end. `nonce`: 32 random bytes in hexadecimal, never used before. */
export const renderHello = (instance: string, nonce: string, range: { least: number; most: number } = protocols) =>
  JSON.stringify({ program: "super-pi", ...range, nonce, instance })

/** The other side's hello; null when it is none. */
export const readHello = (line: string): Hello | null => Option.getOrNull(decodeHello(line))

/** Whether two ranges of protocol numbers have one in common. */
export const speaks = (theirs: Pick<Hello, "least" | "most">): boolean =>
  theirs.least <= protocols.most && theirs.most >= protocols.least

/** The two hello lines of a connection. */
export interface Hellos {
  readonly caller: string
  readonly server: string
}

const proofOf = (secret: string, role: Role, hellos: Hellos, identity: string): Buffer =>
  createHmac("sha256", secret)
    .update(JSON.stringify(["super-pi peer", role, hellos.caller, hellos.server, identity]))
    .digest()

/** The line that shows who a side is and proves that it knows the secret. */
export const renderProof = (secret: string, role: Role, hellos: Hellos, self: PeerIdentity): string => {
  const { name, epoch, address, instance, version, system } = self
  const identity = JSON.stringify({ name, epoch, address, instance, version, system })
  return JSON.stringify({ identity, proof: proofOf(secret, role, hellos, identity).toString("hex") })
}

export const renderRefusal = (refused: Refusal): string => JSON.stringify({ refused })

/** What the other side, whose role is `role`, answered: who it is, why it turns us away, or null when it is nothing of ours. */
export const readProof = (
  line: string,
  secret: string,
  role: Role,
  hellos: Hellos,
): { readonly peer: PeerIdentity } | { readonly refused: Refusal } | { readonly unproved: true } | null => {
  const answer = Option.getOrNull(decodeProved(line))
  if (answer === null) return null
  if ("refused" in answer) return { refused: answer.refused }
  const expected = proofOf(secret, role, hellos, answer.identity)
  if (!timingSafeEqual(expected, Buffer.from(answer.proof, "hex"))) return { unproved: true }
  const peer = Option.getOrNull(decodeIdentity(answer.identity))
  const said = readHello(hellos[role])
  // An identity is that of the process that said hello.
  return peer === null || peer.instance !== said?.instance ? null : { peer }
}
