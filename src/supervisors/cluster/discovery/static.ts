/**
 * A list of hosts that does not change.
 */
import { Stream } from "effect"
import type { HostPort } from "../../../domain/host-port.ts"
import type { Discovery } from "./discovery.ts"

export const staticHosts = (hosts: ReadonlyArray<HostPort>): Discovery => ({
  strategy: "static",
  peers: Stream.concat(Stream.make(hosts), Stream.never),
})
