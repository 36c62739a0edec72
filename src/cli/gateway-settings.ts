/**
 * Who may call a server of this node: the `gateway` section of the settings and SUPER_PI_GATEWAY_TOKEN. What is wrong there keeps the server
 * from starting.
 */
import { Either } from "effect"
import { type GatewaySettings, readGatewaySettings } from "../domain/gateway-settings.ts"
import type { Authenticator } from "../protocols/auth/tokens.ts"
import { CommandFailure } from "./exit.ts"
import type { NodeOptions } from "./ports.ts"

const refused = (fault: string) => new CommandFailure(`${fault}; nothing is served until it is repaired`)

export const gatewaySettingsOf = ({ settings }: NodeOptions): GatewaySettings =>
  Either.getOrThrowWith(readGatewaySettings(settings.gateway), (fault) => refused(`settings.json: ${fault}`))

/** Whose tokens count; everybody is `local` where there are none. */
export const authOf = async (options: NodeOptions): Promise<Authenticator> => {
  const { authenticatorOf } = await import("../protocols/auth/tokens.ts")
  const variable = options.env.SUPER_PI_GATEWAY_TOKEN
  return Either.getOrThrowWith(authenticatorOf(gatewaySettingsOf(options), variable), refused)
}
