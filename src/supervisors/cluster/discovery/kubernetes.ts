/**
 * The pods behind a headless Service. A short name is looked for as it is, in the namespace of the pod, and in the search domains of its
 * resolver; the first that has addresses counts.
 */
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import type { HostPort } from "../../../domain/host-port.ts"
import type { Discovery } from "./discovery.ts"
import { addressesOf, type Dns, DnsFault, makeDns, polled } from "./dns.ts"

export interface KubernetesOptions {
  /** Name of the headless Service, short or whole. */
  readonly service: string
  /** The port of the nodes. */
  readonly port: number
  /** Milliseconds between two queries. */
  readonly pollMs: number
}

/** What a pod knows of its surroundings; files that are not there are empty. */
export interface Pod {
  /** The namespace of its service account. */
  readonly namespace: string
  /** Its resolver's configuration. */
  readonly resolvConf: string
}

const textOf = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

const thisPod = (): Pod => ({
  namespace: textOf("/var/run/secrets/kubernetes.io/serviceaccount/namespace").trim(),
  resolvConf: textOf("/etc/resolv.conf"),
})

/** The names to try, in order. */
export const candidateNames = (service: string, { namespace, resolvConf }: Pod): ReadonlyArray<string> => {
  const whole = namespace === "" ? [] : [`${service}.${namespace}.svc.cluster.local`]
  const search = /^\s*search\s+(.*)$/m.exec(resolvConf)?.[1]?.trim().split(/\s+/) ?? []
  return [...new Set([service, ...whole, ...search.slice(0, 32).map((domain) => `${service}.${domain}`)])]
}

export const kubernetesDns = (
  { service, port, pollMs }: KubernetesOptions,
  dns: Dns = makeDns(),
  pod: Pod = thisPod(),
): Discovery => {
  const names = candidateNames(service, pod)
  const first = names.reduce<Effect.Effect<ReadonlyArray<HostPort>, DnsFault>>(
    (before, name) => Effect.catchAll(before, () => addressesOf(dns, name, port)),
    new DnsFault({ name: service, code: "ENOTFOUND" }),
  )
  return { strategy: "kubernetes_dns", peers: polled(first, pollMs) }
}
