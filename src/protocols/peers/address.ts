/**
 * Where other nodes reach this one.
 */
import { networkInterfaces } from "node:os"
import type { ClusterSettings } from "../../domain/cluster-settings.ts"
import { type HostPort, parseHostPort } from "../../domain/host-port.ts"

/** Addresses that say "every address of the machine". */
const everywhere = ["0.0.0.0", "::", "*"]

interface Interface {
  readonly address: string
  readonly family: string
  readonly internal: boolean
}

/** An address of the machine that others can use: IPv4 first, none that is valid on one link only; loopback where there is no other. */
export const machineAddress = (interfaces: ReadonlyArray<Interface>): string => {
  const usable = interfaces.filter((one) => !one.internal && !/^(fe[89ab]|169\.254\.)/i.test(one.address))
  const first = usable.find((one) => one.family === "IPv4") ?? usable[0]
  return first?.address ?? "127.0.0.1"
}

const ownInterfaces = (): ReadonlyArray<Interface> =>
  Object.values(networkInterfaces()).flatMap((addresses = []) => addresses)

/**
 * The address that a node advertises once it listens on `port`: what the settings say, else the host after `@` of its name, else the host
 * that it listens on, else an address of the machine.
 */
export const advertisedAddress = (
  { advertise, name, listen }: Pick<ClusterSettings, "advertise" | "name" | "listen">,
  port: number,
  interfaces: ReadonlyArray<Interface> = ownInterfaces(),
): HostPort => {
  if (advertise !== null) return advertise
  const named = name?.includes("@") ? parseHostPort(name, port) : null
  if (named !== null) return { host: named.host, port }
  const host = listen.host === null || everywhere.includes(listen.host) ? machineAddress(interfaces) : listen.host
  return { host, port }
}
