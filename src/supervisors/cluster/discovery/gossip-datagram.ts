/**
 * What a node calls out to its network: who it is and where. Pure. A datagram is an HMAC-SHA-256 under the gossip secret (32 bytes) and what
 * it is of, in JSON. Whatever is foreign, stale, said before or malformed is nothing.
 */
import { createHmac, timingSafeEqual } from "node:crypto"
import { Option, Schema } from "effect"
import type { Announced } from "./discovery.ts"

/** Bytes that a datagram may have: one packet of any network. */
export const maxDatagram = 1200
/** Milliseconds by which clocks may differ, and for which a nonce is remembered. */
export const windowMs = 30_000
/** Nonces that are remembered; the oldest give way. */
const maxNonces = 50_000

const macBytes = 32

const Call = Schema.Struct({
  v: Schema.Literal(1),
  name: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200)),
  host: Schema.String.pipe(Schema.pattern(/^[\w.:%-]{1,253}$/)),
  port: Schema.Int.pipe(Schema.between(1, 65_535)),
  instance: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(100)),
  /** Milliseconds since the epoch. */
  at: Schema.Int,
  nonce: Schema.String.pipe(Schema.pattern(/^[0-9a-f]{32}$/)),
})
const decodeCall = Schema.decodeUnknownOption(Schema.parseJson(Call))

const macOf = (secret: string, payload: Uint8Array): Buffer =>
  createHmac("sha256", secret).update("super-pi gossip 1\n").update(payload).digest()

/** `nonce`: 16 random bytes in hexadecimal, never used before. */
export const renderCall = (secret: string, self: Announced, at: number, nonce: string): Buffer => {
  const { host, port } = self.address
  const payload = Buffer.from(JSON.stringify({ v: 1, name: self.name, host, port, instance: self.instance, at, nonce }))
  return Buffer.concat([macOf(secret, payload), payload])
}

export interface Listener {
  /** Who called, at a time in milliseconds since the epoch; null where it is nothing of ours. */
  readonly read: (datagram: Uint8Array, now: number) => Announced | null
}

/** Reads what is called out under a secret. It remembers nonces, so one belongs to one socket. */
export const makeListener = (secret: string): Listener => {
  const nonces = new Map<string, number>()
  const forget = (now: number) => {
    // In the order in which they came.
    for (const [nonce, until] of nonces) {
      if (until >= now && nonces.size <= maxNonces) return
      nonces.delete(nonce)
    }
  }
  return {
    read: (datagram, now) => {
      if (datagram.length <= macBytes || datagram.length > maxDatagram) return null
      const payload = datagram.subarray(macBytes)
      if (!timingSafeEqual(macOf(secret, payload), datagram.subarray(0, macBytes))) return null
      const call = Option.getOrNull(decodeCall(Buffer.from(payload).toString("utf8")))
      if (call === null || Math.abs(now - call.at) > windowMs) return null
      forget(now)
      if (nonces.has(call.nonce)) return null
      // A clock that is ahead makes a call fresh for longer.
      nonces.set(call.nonce, now + 2 * windowMs)
      return { name: call.name, address: { host: call.host, port: call.port }, instance: call.instance }
    },
  }
}
