/**
 * Addresses of nodes as people write them: `host`, `host:port`, `name@host`, IPv6 bare or in brackets. Pure.
 */

/** `host` is a name or an address, an IPv6 one without brackets; `port` 0 to 65,535. */
export interface HostPort {
  readonly host: string
  readonly port: number
}

const name = /^[A-Za-z0-9_]([A-Za-z0-9_.-]{0,251}[A-Za-z0-9_.])?$/
/** Hexadecimal groups, an optional IPv4 tail and an optional zone; the system has the last word. */
const ipv6 = /^[0-9A-Fa-f:]{2,39}(\.\d{1,3}){0,3}(%[\w.-]{1,32})?$/

const isIpv6 = (host: string): boolean => host.includes(":") && ipv6.test(host)

const portOf = (digits: string): number | null => {
  if (!/^\d{1,5}$/.test(digits)) return null
  const port = Number(digits)
  return port <= 65_535 ? port : null
}

/** The address in a text; what stands before `@` is the name of a node and is dropped. Null where it is none. */
export const parseHostPort = (text: string, defaultPort: number): HostPort | null => {
  const address = text.slice(text.lastIndexOf("@") + 1)
  const bracketed = /^\[([^\]]*)\](?::(\d+))?$/.exec(address)
  if (bracketed !== null) {
    const [, host = "", digits] = bracketed
    const port = digits === undefined ? defaultPort : portOf(digits)
    return isIpv6(host) && port !== null ? { host, port } : null
  }
  if (isIpv6(address) && address.indexOf(":") !== address.lastIndexOf(":")) return { host: address, port: defaultPort }
  const colon = address.indexOf(":")
  const host = colon === -1 ? address : address.slice(0, colon)
  const port = colon === -1 ? defaultPort : portOf(address.slice(colon + 1))
  return name.test(host) && port !== null ? { host, port } : null
}

/** `host:port`, an IPv6 host in brackets. */
export const renderHostPort = ({ host, port }: HostPort): string =>
  host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`
