/**
 * One DNS name that lists all nodes: its addresses, or, for a name that begins with `_`, the targets and ports of its service records.
 */
import type { Discovery } from "./discovery.ts"
import { addressesOf, type Dns, makeDns, polled, servicesOf } from "./dns.ts"

export interface DnsPollOptions {
  readonly query: string
  /** The port of the nodes. */
  readonly port: number
  /** Milliseconds between two queries. */
  readonly pollMs: number
}

export const dnsPoll = ({ query, port, pollMs }: DnsPollOptions, dns: Dns = makeDns()): Discovery => ({
  strategy: "dnspoll",
  peers: polled(query.startsWith("_") ? servicesOf(dns, query) : addressesOf(dns, query, port), pollMs),
})
