/**
 * Keys for several effects of one call, derived from the call's own: name-based UUIDs (RFC 9562, version 5), so that a call that runs
 * again derives the same ones, and two calls never share one.
 */
import { createHash } from "node:crypto"

/** The UUID of `name` within the effect `key`, itself a UUID or any text that is unique. */
export const effectKeyOf = (key: string, name: string): string => {
  const space = Buffer.from(key.replaceAll("-", ""), "hex")
  const namespace = space.length === 16 ? space : Buffer.from(key)
  const hash = createHash("sha1").update(namespace).update(name).digest().subarray(0, 16)
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x50
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80
  const hex = hash.toString("hex")
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
