/**
 * What a node is asked to be when it runs as a service: flags, environment and the settings file, or every fault of them.
 */
import { Either } from "effect"
import type { GatewaySettings } from "../domain/gateway-settings.ts"
import { envValue } from "../models/settings.ts"
import type { Invocation } from "./arguments.ts"
import { nodeOptionsOf } from "./context.ts"
import { CommandFailure, ExitCode, messageOf } from "./exit.ts"
import { authOf, gatewaySettingsOf } from "./gateway-settings.ts"
import * as option from "./options.ts"
import type { NodeOptions } from "./ports.ts"
import { withDefaults } from "./serve-options.ts"
import { type ServiceSettings, serviceSettings } from "./service-settings.ts"

export interface Service {
  readonly options: NodeOptions
  readonly settings: ServiceSettings
  readonly gateway: GatewaySettings
}

/** The environment with what flags say in it. A service has a log unless it is told to have another one. */
const envOf = (invocation: Invocation): Record<string, string | undefined> => {
  const port = invocation.get(option.port)
  const host = invocation.get(option.host)
  return {
    ...process.env,
    SUPER_PI_LOG_LEVEL: process.env.SUPER_PI_LOG_LEVEL ?? "info",
    ...(port === undefined ? {} : { SUPER_PI_GATEWAY_PORT: String(port) }),
    ...(host === undefined ? {} : { SUPER_PI_GATEWAY_BIND: host }),
  }
}

/** The `gateway` section with who may call, and whether that may be served where it is to be. */
const gatewayOf = async (options: NodeOptions, host: string | undefined): Promise<GatewaySettings> => {
  const settings = gatewaySettingsOf(options)
  const { required } = await authOf(options)
  const { isLoopback } = await import("../protocols/http/origin.ts")
  const address = host ?? settings.host ?? "127.0.0.1"
  if (required || isLoopback(address)) return settings
  const name = host === undefined ? "gateway.host" : "SUPER_PI_GATEWAY_BIND"
  throw new CommandFailure(
    `${name}: expected a loopback address while no token is configured, got ${JSON.stringify(address)}; set SUPER_PI_GATEWAY_TOKEN or gateway.tokens`,
  )
}

/** The options of the node; null with a fault where there is one that was not known yet. */
const optionsOf = (invocation: Invocation, env: NodeOptions["env"], faults: Array<string>): NodeOptions | null => {
  try {
    return withDefaults({ ...nodeOptionsOf(invocation), env }, invocation)
  } catch (error) {
    const fault = messageOf(error)
    if (!faults.includes(fault)) faults.push(fault)
    return null
  }
}

/** Prints all faults but the last, which is thrown, with the exit code of a wrong command line. Nothing has been opened by then. */
export const readService = async (invocation: Invocation): Promise<Service> => {
  const env = envOf(invocation)
  const read = serviceSettings(env, invocation.get(option.db) !== undefined)
  const faults = Either.isLeft(read) ? [...read.left] : []
  const options = optionsOf(invocation, env, faults)
  const wanted = Either.isLeft(read) || read.right.gateway
  const gateway =
    options === null || !wanted
      ? {}
      : await gatewayOf(options, envValue(env, "SUPER_PI_GATEWAY_BIND")?.trim()).catch((error: unknown) => {
          faults.push(messageOf(error))
          return {}
        })
  if (Either.isRight(read) && options !== null && faults.length === 0) return { options, settings: read.right, gateway }
  const last = faults.pop() ?? "it cannot start as it is configured"
  for (const fault of faults) process.stderr.write(`super-pi: ${fault}\n`)
  throw new CommandFailure(last, ExitCode.usage)
}
