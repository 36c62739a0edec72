/**
 * Where other nodes may be. Discovery only names addresses: who is there, and whether it is one of ours, is found out by connecting. Errors
 * are logged and tried again; they never end it, and what was found stays until something else is found.
 */
import { Effect, type Stream } from "effect"
import type { ClusterSettings } from "../../../domain/cluster-settings.ts"
import type { HostPort } from "../../../domain/host-port.ts"

export interface Discovery {
  readonly strategy: string
  /** The addresses of now and after each change, always all of them; this node may be among them. Never ends. */
  readonly peers: Stream.Stream<ReadonlyArray<HostPort>>
}

/** What a node says of itself where others look for it. */
export interface Announced {
  readonly name: string
  readonly address: HostPort
  /** A fresh value for every life of a process. */
  readonly instance: string
}

/** The discovery that the settings ask for; only its own code is loaded. */
export const discoveryOf = (
  settings: Pick<ClusterSettings, "discovery" | "onlyNames">,
  self: Announced,
): Effect.Effect<Discovery> =>
  Effect.promise(async () => {
    const { discovery, onlyNames } = settings
    switch (discovery.strategy) {
      case "none":
        return (await import("./none.ts")).none
      case "static":
        return (await import("./static.ts")).staticHosts(discovery.hosts)
      case "dnspoll":
        return (await import("./dnspoll.ts")).dnsPoll(discovery)
      case "kubernetes_dns":
        return (await import("./kubernetes.ts")).kubernetesDns(discovery)
      case "gossip":
        return (await import("./gossip.ts")).gossip({ ...discovery, onlyNames }, self)
    }
  })
