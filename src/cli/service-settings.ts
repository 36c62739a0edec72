/**
 * What the environment says of a node that runs as a service: whether and where it serves, and whether it is a member of a cluster. Pure.
 * Everything that is wrong is found before anything is opened, one line each.
 */
import { Either } from "effect"
import { type ClusterSettings, clusterSettings, refusedBackend } from "../domain/cluster-settings.ts"
import { shown } from "../domain/shown.ts"
import { type Env, envValue } from "../models/settings.ts"
import { serverSettings } from "../storage/postgres/settings.ts"

/** Where a node serves unless somebody says. */
export const defaultGatewayPort = 4000

export interface ServiceSettings {
  /** Whether it serves HTTP. Default true. */
  readonly gateway: boolean
  /** Default {@link defaultGatewayPort}; 0 takes a free one. */
  readonly port: number
  /** Undefined: as the settings file says. */
  readonly host: string | undefined
  readonly cluster: ClusterSettings
}

const truth: Readonly<Record<string, boolean>> = {
  true: true,
  "1": true,
  yes: true,
  false: false,
  "0": false,
  no: false,
}

/** A port, or null where the words are none. */
export const readPort = (word: string): number | null => {
  const port = /^\d{1,5}$/.test(word) ? Number(word) : -1
  return port >= 0 && port <= 65_535 ? port : null
}

/** Left: the faults, each one line that names the variable. `file`: the database is one that a flag names. */
export const serviceSettings = (env: Env, file = false): Either.Either<ServiceSettings, ReadonlyArray<string>> => {
  const faults: Array<string> = []
  const said = envValue(env, "SUPER_PI_GATEWAY")?.trim().toLowerCase() ?? "true"
  const gateway = truth[said]
  if (gateway === undefined) faults.push(`SUPER_PI_GATEWAY: expected true or false, got ${shown(said)}`)
  const word = envValue(env, "SUPER_PI_GATEWAY_PORT")?.trim()
  const port = word === undefined ? defaultGatewayPort : readPort(word)
  if (port === null) faults.push(`SUPER_PI_GATEWAY_PORT: expected a port from 0 to 65535, got ${shown(word ?? "")}`)
  const server = file ? Either.right(null) : serverSettings(env)
  if (Either.isLeft(server)) faults.push(server.left.message)
  const cluster = clusterSettings(env)
  if (Either.isLeft(cluster)) faults.push(cluster.left.message)
  const refused =
    Either.isRight(cluster) && Either.isRight(server)
      ? refusedBackend(cluster.right, server.right === null ? "sqlite" : "postgres")
      : null
  if (refused !== null) faults.push(refused.message)
  if (Either.isLeft(cluster) || gateway === undefined || port === null || faults.length > 0) return Either.left(faults)
  return Either.right({ gateway, port, host: envValue(env, "SUPER_PI_GATEWAY_BIND")?.trim(), cluster: cluster.right })
}
